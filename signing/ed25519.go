package signing

import (
	"crypto/ed25519"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// ParseEd25519Key takes an Ed25519 key as tools write it: PEM with a PRIVATE KEY (PKCS #8, RFC
// 8410), not encrypted, which signs and verifies, or with a PUBLIC KEY (SubjectPublicKeyInfo),
// which verifies. [Secret.Reveal] gives it back as "whsk_" or "whpk_" and base64, which
// [ParseSecret] reads. The errors match [ErrSecret], and hold nothing of the text.
func ParseEd25519Key(text string) (Secret, error) {
	s, err := ed25519PEM(text)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return s, nil
}

func ed25519PEM(text string) (Secret, error) {
	if err := asSaved(text); err != nil {
		return Secret{}, err
	}
	block, rest := pem.Decode([]byte(text))
	if len(text) > maxSecretText || block == nil || strings.TrimSpace(string(rest)) != "" {
		return Secret{}, errors.New("it is not one block of PEM: an Ed25519 key has a PRIVATE KEY or a PUBLIC KEY, and nothing behind it")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case publicKeyPEM:
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	default:
		return Secret{}, errors.New("the PEM must be a PRIVATE KEY (PKCS #8), not encrypted, or a PUBLIC KEY (SubjectPublicKeyInfo)")
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return parseSecret(prefixPrivate + base64.StdEncoding.EncodeToString(key.Seed()))
	case ed25519.PublicKey:
		return parseSecret(prefixPublic + base64.StdEncoding.EncodeToString(key))
	}
	if err != nil { // its text tells of the form alone, and could come to tell more
		return Secret{}, errors.New("the PEM cannot be read as a key")
	}
	return Secret{}, errors.New("the PEM has a key of another kind than Ed25519")
}

// edPrivate accepts the two forms in which an Ed25519 private key is written: the 32-byte
// seed (RFC 8032), and the seed followed by the public key (64 bytes). Implementations of
// Standard Webhooks hand out the second.
func edPrivate(raw []byte) (ed25519.PrivateKey, error) {
	switch len(raw) {
	case ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(raw), nil
	case ed25519.PrivateKeySize:
		key := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		// Signing with a public half of another key gives the private key away.
		if subtle.ConstantTimeCompare(key, raw) != 1 {
			return nil, errors.New("its public half does not belong to its private half")
		}
		return key, nil
	}
	return nil, errors.New("the part after whsk_ must decode to a seed of 32 bytes or a key of 64")
}

func edPublic(raw []byte) (ed25519.PublicKey, error) {
	if len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("the part after whpk_ must decode to 32 bytes")
	}
	y := [ed25519.PublicKeySize]byte(raw)
	y[31] &= 0x7f // without the sign of x
	for _, small := range smallOrder {
		if y == small {
			return nil, errors.New("it is a point of small order, for which anyone can make signatures")
		}
	}
	return raw, nil
}

// smallOrder has the y coordinates of the curve's eight points of small order, in every
// encoding that decoders take. They are 0, 1, −1 and the two of order 8, as in RFC 7748
// section 7 and RFC 8032 section 5.1.3. The arithmetic of verification lets a signature
// that needs no private key pass for these.
var smallOrder = [...][ed25519.PublicKeySize]byte{
	{},
	{0: 1},
	{
		0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
		0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
	},
	{
		0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
	},
	nearPrime(0xec), nearPrime(0xed), nearPrime(0xee),
}

// nearPrime is p−1, p or p+1 for the field's prime p = 2^255−19, whose lowest byte
// is 0xed.
func nearPrime(low byte) (y [ed25519.PublicKeySize]byte) {
	for i := range y {
		y[i] = 0xff
	}
	y[0], y[31] = low, 0x7f
	return y
}
