package signing

import (
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	publicKeyPEM = "PUBLIC KEY"
	maxRSAText   = 4096 // a key of 8192 bits in PEM has some 1500 characters
)

// publicKeyDER reads PEM, or the base64 of the DER alone. kind is that of the PEM.
func publicKeyDER(text string, limit int) (der []byte, kind string, err error) {
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
