package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
)

// maxECDSA is the longest signature of P-256 in ASN.1: a sequence of two integers of 33
// bytes each, where the first byte is the sign.
const (
	maxECDSA = 72
	minECDSA = 8
)

// decodeECDSA decodes strict base64. Whether it is ASN.1 is found out when it is verified.
func decodeECDSA(room *[maxECDSA]byte, text string) ([]byte, bool) {
	if len(text) > base64.StdEncoding.EncodedLen(maxECDSA) || len(text)%4 != 0 {
		return nil, false
	}
	var raw [maxECDSA / 3 * 4]byte
	n, err := strictBase64.Decode(room[:], raw[:copy(raw[:], text)])
	if err != nil || n < minECDSA || base64.StdEncoding.EncodedLen(n) != len(text) {
		return nil, false
	}
	return room[:n], true
}

// ParseECDSAPublicKey takes an ECDSA public key on the curve P-256, as PEM or as the base64
// of its DER alone, which is how SendGrid shows it (SubjectPublicKeyInfo, RFC 5480). It
// verifies and does not sign. The errors match [ErrSecret].
//
// Use this function too to read the text that [Secret.Reveal] gives back.
func ParseECDSAPublicKey(text string) (Secret, error) {
	key, err := ecdsaPublic(text)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return Secret{&material{
		fingerprint: fingerprint(der),
		reveal:      func() string { return text },
		ecdsa:       func(sum, signature []byte) bool { return ecdsa.VerifyASN1(key, sum, signature) },
	}}, nil
}

func ecdsaPublic(text string) (*ecdsa.PublicKey, error) {
	der, kind, err := publicKeyDER(text, maxSecretText)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, is := parsed.(*ecdsa.PublicKey)
	if err != nil || kind != publicKeyPEM || !is || key.Curve != elliptic.P256() {
		return nil, errors.New("it is no ECDSA public key on the curve P-256 (SubjectPublicKeyInfo)")
	}
	return key, nil
}
