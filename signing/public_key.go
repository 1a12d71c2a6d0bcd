package signing

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

const (
	publicKeyPEM = "PUBLIC KEY"
	maxRSAText   = 4096 // a key of 8192 bits in PEM has some 1500 characters
)

// publicKeyDER reads PEM, or the base64 of the DER alone. kind is that of the PEM.
func publicKeyDER(text string, limit int) (der []byte, kind string, err error) {
	if err := asSaved(text); err != nil {
		return nil, "", err
	}
	if len(text) > limit {
		return nil, "", fmt.Errorf("it has %d bytes: at most %d are allowed", len(text), limit)
	}
	if block, rest := pem.Decode([]byte(text)); block != nil {
		if block.Type != publicKeyPEM && block.Type != "RSA PUBLIC KEY" || len(rest) > 0 {
			return nil, "", errors.New("the PEM must have one block, a PUBLIC KEY, and nothing behind it")
		}
		return block.Bytes, block.Type, nil
	}
	if der, err = strictBase64.DecodeString(text); err != nil {
		return nil, "", errors.New("it is neither PEM nor base64: give the public key as its sender shows it")
	}
	return der, publicKeyPEM, nil
}

const beginPEM = "-----BEGIN "

var errPEM = errors.New("it is PEM: read an Ed25519 key with ParseEd25519Key, and a public key of another kind with ParseECDSAPublicKey or ParseRSAPublicKey")

// asSaved refuses a text in a form in which programs on Windows save a file, and says so: what
// else is wrong with such a text leads nobody there.
func asSaved(text string) error {
	switch {
	case strings.HasPrefix(text, "\ufeff"):
		return errors.New("it begins with a byte order mark, as programs on Windows put in front of a file: give it without, or save the file as UTF-8 without one")
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"), strings.Contains(text, "\x00"):
		return errors.New("it is in UTF-16, as programs on Windows save files, or has a NUL: save the file as UTF-8")
	}
	return nil
}
