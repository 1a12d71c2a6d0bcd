package signing

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseTextSecret takes an HMAC secret that another sender has issued. The bytes of the
// text are the key in every case: Stripe's whsec_ is no base64. It has 15 to 1024 bytes.
// Spaces inside are accepted, because some senders let one choose the text. Spaces around
// it are refused, because they come along when a secret is copied. The errors match
// [ErrSecret] and hold nothing of the text.
//
// Read the text of [Secret.Reveal] with this function again. A scheme whose Key is
// DecodedKey cannot use such a secret: ParseSecret reads secrets for those.
func ParseTextSecret(text string) (Secret, error) {
	if err := checkTextSecret(text); err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return newHMACSecret(text, nil, false), nil
}

func checkTextSecret(text string) error {
	if err := asSaved(text); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(text, beginPEM):
		return errPEM
	case len(text) < minTextSecret || len(text) > maxSecretText:
		return fmt.Errorf("it has %d bytes: it must have from %d to %d", len(text), minTextSecret, maxSecretText)
	case !utf8.ValidString(text):
		return errors.New("it is not valid UTF-8")
	case strings.TrimSpace(text) != text:
		return errors.New("there is white space around it: give the secret alone")
	case allEqual([]byte(text)):
		return errors.New("all of its bytes are equal: it must be random")
	case strings.HasPrefix(text, prefixPublic) || strings.HasPrefix(text, prefixPrivate):
		// Anyone who knows a public key could make HMACs with it.
		return errors.New("it is an Ed25519 key, not an HMAC secret: use ParseSecret")
	}
	for i, r := range text {
		if r != ' ' && (unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return fmt.Errorf("there is a control or an invisible character at offset %d: give the secret alone", i)
		}
	}
	return nil
}

// ParseHexPublicKey takes an Ed25519 public key as Discord shows it: 64 hex digits.
// It verifies and does not sign. The errors match [ErrSecret].
//
// Read the result of [Secret.Reveal] with this function again.
func ParseHexPublicKey(text string) (Secret, error) {
	if err := asSaved(text); err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return Secret{}, fmt.Errorf("%w: a public key in hex has %d digits and nothing around them", ErrSecret, 2*ed25519.PublicKeySize)
	}
	s, err := publicSecret(text, raw)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return s, nil
}
