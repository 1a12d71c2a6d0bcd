package signing

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The prefixes of Standard Webhooks' serialised secrets.
const (
	prefixHMAC    = "whsec_"
	prefixPrivate = "whsk_"
	prefixPublic  = "whpk_"
)

// Limits in bytes. Standard Webhooks asks for 24 to 64 bytes in an HMAC secret. Other
// senders choose theirs. The shortest text that one of them issues is Dropbox's, of 15
// letters and digits, which nobody can search through.
const (
	minSecret     = 24
	minTextSecret = 15
	minDecoded    = 16
	maxSecret     = 64
	maxSecretText = 1024
)

// Secret is key material that does not let itself be printed. It is one of
//
//   - an HMAC secret of Standard Webhooks: "whsec_" and 24 to 64 bytes in base64;
//   - an HMAC secret in any other text of 24 to 1024 bytes;
//   - an HMAC secret that another sender has issued, from [ParseTextSecret];
//   - an Ed25519 private key: "whsk_" and a seed (32 bytes) or seed and public key
//     (64 bytes) in base64, which signs and verifies;
//   - an Ed25519 public key: "whpk_" and 32 bytes in base64, which verifies, or 64
//     hex digits, from [ParseHexPublicKey];
//   - an Ed25519 key of either kind in PEM, from [ParseEd25519Key];
//   - a public key of ECDSA or RSA, which verifies, from [ParseECDSAPublicKey] or
//     [ParseRSAPublicKey].
//
// A Secret is small, may be copied, and is safe for concurrent use. The zero value
// is no secret and is refused by [NewKeyring]. Equality (==) is identity: two
// Secrets that were parsed from the same text are not equal.
//
// Every way of printing or encoding a Secret gives a placeholder with its
// [Secret.Fingerprint]: fmt with any verb, log/slog, JSON and text. Encoding with
// encoding/gob is an error, because it is storage, and a placeholder would lose
// the secret. [Secret.Reveal] is the only way out.
type Secret struct {
	m *material
}

// material holds keys only inside closures and pools. Printers that walk unexported
// fields by reflection, where methods are not called, find addresses there.
type material struct {
	fingerprint string
	reveal      func() string

	text     *hmacKey // keyed by the text's bytes; nil for Ed25519
	decoded  *hmacKey // keyed by the decoded base64; nil if the text is not base64, and for Ed25519
	prefixed bool     // whsec_

	hex, base64URL *hmacKey // keyed by what the text stands for; nil if it is not in this form

	ecdsa func(sum, signature []byte) bool              // nil without an ECDSA public key
	rsa   func(a Algorithm, sum, signature []byte) bool // nil without an RSA public key

	sign   func(message []byte) []byte          // nil without an Ed25519 private key
	verify func(message, signature []byte) bool // nil for HMAC
}

// GenerateSecret returns a new HMAC secret: "whsec_" and 32 random bytes in base64.
func GenerateSecret() Secret {
	var key [32]byte
	rand.Read(key[:]) // never fails: it ends the program rather than give less than it should
	return newHMACSecret(prefixHMAC+base64.StdEncoding.EncodeToString(key[:]), key[:], true)
}

// ParseSecret takes the text of a secret exactly as its issuer shows it. It refuses a
// secret that is weaker than it seems: a short one, or one of equal bytes. It refuses
// base64 that is not strict, and white space, control and invisible characters, which
// come along when a secret is copied. The errors match [ErrSecret], say what would be
// right, and hold nothing of the text.
func ParseSecret(text string) (Secret, error) {
	s, err := parseSecret(text)
	if err != nil {
		return Secret{}, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	return s, nil
}

func parseSecret(text string) (Secret, error) {
	switch {
	case text == "":
		return Secret{}, errors.New("it is empty")
	case len(text) > maxSecretText:
		return Secret{}, fmt.Errorf("it has %d bytes: at most %d are allowed", len(text), maxSecretText)
	case strings.HasPrefix(text, beginPEM):
		return Secret{}, errPEM
	}
	if err := asSaved(text); err != nil {
		return Secret{}, err
	}
	if !utf8.ValidString(text) {
		// JSON replaces such bytes on the way to the other side, which would have another key.
		return Secret{}, errors.New("it is not valid UTF-8")
	}
	for i, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return Secret{}, fmt.Errorf("there is white space or a control character at offset %d: give the secret alone", i)
		}
	}
	if strings.HasPrefix(text, "v1,wh") || strings.HasPrefix(text, "v1a,wh") {
		return Secret{}, errors.New("it begins with a signature's version: give the part after the comma")
	}
	if strings.ContainsAny(text[:1], "\"'`") && strings.HasPrefix(text[1:], "wh") {
		return Secret{}, errors.New("it is in quotation marks: give what is between them")
	}
	for _, c := range []struct {
		prefix string
		make   func(text string, raw []byte) (Secret, error)
	}{{prefixHMAC, prefixedSecret}, {prefixPrivate, privateSecret}, {prefixPublic, publicSecret}} {
		rest, found := strings.CutPrefix(text, c.prefix)
		if !found {
			continue
		}
		raw, err := strictBase64.DecodeString(rest)
		if err != nil {
			return Secret{}, fmt.Errorf("the part after %s is not base64: it must be the standard alphabet with padding", c.prefix)
		}
		return c.make(text, raw)
	}
	return plainSecret(text)
}

var strictBase64 = base64.StdEncoding.Strict()

func prefixedSecret(text string, raw []byte) (Secret, error) {
	if len(raw) < minSecret || len(raw) > maxSecret {
		return Secret{}, fmt.Errorf("the part after %s decodes to %d bytes: it must be from %d to %d", prefixHMAC, len(raw), minSecret, maxSecret)
	}
	if allEqual(raw) {
		return Secret{}, errors.New("all of its bytes are equal: it must be random")
	}
	return newHMACSecret(text, raw, true), nil
}

func plainSecret(text string) (Secret, error) {
	if len(text) < minSecret {
		return Secret{}, fmt.Errorf("it has %d bytes: at least %d are needed", len(text), minSecret)
	}
	if allEqual([]byte(text)) {
		return Secret{}, errors.New("all of its bytes are equal: it must be random")
	}
	// Libraries of Standard Webhooks take the base64 without its prefix too, so
	// that senders hand it out like that.
	raw, err := strictBase64.DecodeString(text)
	if err != nil || len(raw) < minSecret || len(raw) > maxSecret || allEqual(raw) {
		raw = nil
	}
	return newHMACSecret(text, raw, false), nil
}

func privateSecret(text string, raw []byte) (Secret, error) {
	key, err := edPrivate(raw)
	if err != nil {
		return Secret{}, err
	}
	if allEqual(key.Seed()) {
		return Secret{}, errors.New("all of its bytes are equal: it must be random")
	}
	public := key.Public().(ed25519.PublicKey)
	return Secret{&material{
		fingerprint: fingerprint(public),
		reveal:      func() string { return text },
		sign:        func(message []byte) []byte { return ed25519.Sign(key, message) },
		verify:      func(message, signature []byte) bool { return ed25519.Verify(public, message, signature) },
	}}, nil
}

func publicSecret(text string, raw []byte) (Secret, error) {
	public, err := edPublic(raw)
	if err != nil {
		return Secret{}, err
	}
	return Secret{&material{
		fingerprint: fingerprint(public),
		reveal:      func() string { return text },
		verify:      func(message, signature []byte) bool { return ed25519.Verify(public, message, signature) },
	}}, nil
}

func newHMACSecret(text string, decoded []byte, prefixed bool) Secret {
	m := &material{
		fingerprint: fingerprint([]byte(text)),
		reveal:      func() string { return text },
		text:        newHMACKey([]byte(text)),
		prefixed:    prefixed,
	}
	if decoded != nil {
		m.decoded = newHMACKey(decoded)
	}
	if raw, err := hex.DecodeString(text); err == nil && len(raw) >= minDecoded && !allEqual(raw) {
		m.hex = newHMACKey(raw)
	}
	if raw, err := strictRawURL.DecodeString(strings.TrimRight(text, "=")); err == nil && len(raw) >= minDecoded && !allEqual(raw) && len(text)%4 != 1 {
		m.base64URL = newHMACKey(raw)
	}
	return Secret{m}
}

func allEqual(b []byte) bool {
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

func fingerprint(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("surehook secret fingerprint"))
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// Reveal returns the text of the secret exactly as it was given, or "" for the zero
// Secret. It is meant for showing a secret to its owner and for sealing it at rest.
func (s Secret) Reveal() string {
	if s.m == nil {
		return ""
	}
	return s.m.reveal()
}

// Fingerprint returns eight hex digits by which people can tell secrets apart in
// logs and compare them with the other side's. It is one-way, and too short to
// identify a secret. The private and the public half of an Ed25519 key have the
// same one. The zero Secret has "".
func (s Secret) Fingerprint() string {
	if s.m == nil {
		return ""
	}
	return s.m.fingerprint
}

// String returns the placeholder. It is never acceptable to [ParseSecret], so that
// a printed secret cannot be taken for a real one.
func (s Secret) String() string {
	if s.m == nil {
		return "[no secret]"
	}
	return "[secret " + s.m.fingerprint + "]"
}

// GoString returns the placeholder.
func (s Secret) GoString() string { return s.String() }

// Format writes the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the placeholder as a string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// GobEncode returns an error.
func (s Secret) GobEncode() ([]byte, error) {
	return nil, errors.New("signing: a Secret does not let itself be encoded with gob: store what Reveal returns, sealed")
}
