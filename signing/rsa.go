package signing

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
)

// Bounds of RSA keys in bits. Verifying with a key of 8192 bits takes some ten times as long
// as with one of 2048.
const (
	minRSA = 2048
	maxRSA = 8192
)

// ParseRSAPublicKey takes an RSA public key of 2048 to 8192 bits, as PEM or as the base64
// of its DER alone. The DER is a SubjectPublicKeyInfo (RFC 3279 section 2.3.1). A PEM may
// also have RFC 8017's RSAPublicKey. It verifies and does not sign. The errors match
// [ErrSecret].
//
// Use this function too to read the text that [Secret.Reveal] gives back.
func ParseRSAPublicKey(text string) (Secret, error) {
	key, err := rsaPublic(text)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return Secret{&material{
		fingerprint: fingerprint(x509.MarshalPKCS1PublicKey(key)),
		reveal:      func() string { return text },
		rsa: func(a Algorithm, sum, signature []byte) bool {
			if a == RSAPSSSHA512 {
				// Node's crypto takes the longest salt by default, and libraries leave it at that.
				return rsa.VerifyPSS(key, crypto.SHA512, sum, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto}) == nil
			}
			return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum, signature) == nil
		},
	}}, nil
}

func rsaPublic(text string) (*rsa.PublicKey, error) {
	der, kind, err := publicKeyDER(text, maxRSAText)
	if err != nil {
		return nil, err
	}
	var key *rsa.PublicKey
	if kind == "RSA PUBLIC KEY" {
		key, err = x509.ParsePKCS1PublicKey(der)
	} else if parsed, e := x509.ParsePKIXPublicKey(der); e == nil {
		key, _ = parsed.(*rsa.PublicKey)
	}
	if err != nil || key == nil {
		return nil, errors.New("it is no RSA public key (SubjectPublicKeyInfo)")
	}
	if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
		return nil, fmt.Errorf("the key has %d bits: it must have from %d to %d", bits, minRSA, maxRSA)
	}
	// Under GODEBUG=fips140=only more keys than those are refused, at each signature.
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, make([]byte, sha256.Size), make([]byte, key.Size())); !errors.Is(err, rsa.ErrVerification) {
		return nil, fmt.Errorf("no signature can be verified with the key: %w", err)
	}
	return key, nil
}
