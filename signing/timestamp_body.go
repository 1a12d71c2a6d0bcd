package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// TimestampBody signs "TIMESTAMP.BODY" with HMAC-SHA256, keyed by the bytes of the
// secret's text exactly as it is shown ("whsec_…" included), and sends the MAC as
// 64 lowercase hex digits. It refuses Ed25519 keys: a public key must never be taken for
// an HMAC key.
//
// Its header has room for one signature. It signs with the newest suited key whose
// NotBefore has come, and with no other. While a secret is rotated, a receiver that
// verifies this header alone must know the secret that signs. Either it takes
// [StandardWebhooks], too, or the sender lets the new secret sign later ([Key].NotBefore),
// and the receiver adds it before that.
//
// The signature does not cover the id header, so verifying does not need the header and
// ignores it. Only a repeated one is refused.
//
// The fields are names of headers; empty ones mean Webhook-Id, Webhook-Timestamp
// and Webhook-Hmac-Sha256.
type TimestampBody struct {
	IDHeader        string
	TimestampHeader string
	SignatureHeader string
}

var _ FactReader = TimestampBody{}

// Name returns "timestamp-body".
func (s TimestampBody) Name() string { return "timestamp-body" }

func (s TimestampBody) names() headerNames {
	return headerNames{"Webhook-Id", "Webhook-Timestamp", "Webhook-Hmac-Sha256"}.or(s.IDHeader, s.TimestampHeader, s.SignatureHeader)
}

func (s TimestampBody) check(keys *Keyring) error {
	return s.names().checkWith(keys, s.Name(), func(m *material) bool { return m.text != nil })
}

// Precheck implements [Scheme].
func (s TimestampBody) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	return (&timestampBody{s.names()}).Precheck(h, now, tolerance)
}

// Verify implements [Scheme].
func (s TimestampBody) Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error) {
	return (&timestampBody{s.names()}).Verify(m, keys, now, tolerance)
}

// timestampBody is the verifying half of a TimestampBody, with its names worked out.
type timestampBody struct{ names headerNames }

func (s *timestampBody) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	var r timestampBodyHeaders
	return s.read(h, now, tolerance, &r)
}

type timestampBodyHeaders struct {
	timestamp string
	unix      int64
	mac       [sha256.Size]byte
}

func (s *timestampBody) read(h http.Header, now time.Time, tolerance time.Duration, r *timestampBodyHeaders) error {
	signature := find(h, s.names.signature)
	if err := signature.signatureOnce(s.names.signature); err != nil {
		return err
	}
	if !decodeLowerHex(&r.mac, signature.text) {
		return malformed(s.names.signature, "is malformed: it must be 64 lowercase hex digits")
	}
	if id := find(h, s.names.id); id.count > 0 {
		if err := id.once(s.names.id); err != nil {
			return err
		}
	}
	timestamp := find(h, s.names.timestamp)
	r.timestamp = timestamp.text
	var err error
	r.unix, err = timestamp.timestampIn(s.names.timestamp, now, tolerance)
	return err
}

func (s *timestampBody) Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error) {
	var r timestampBodyHeaders
	if err := s.read(m.Header, now, tolerance, &r); err != nil {
		return Verified{}, err
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	for _, i := range try.index[:try.n] {
		key := keys.keys[i].Secret.m.text
		if key == nil {
			continue
		}
		failure = ErrSignatureMismatch
		mac := key.mac("", r.timestamp, m.Body)
		if subtle.ConstantTimeCompare(mac[:], r.mac[:]) == 1 {
			keys.matched(i)
			return Verified{Scheme: TimestampBody{}.Name(), KeyID: keys.keys[i].ID, Timestamp: time.Unix(r.unix, 0).UTC()}, nil
		}
	}
	return Verified{}, failure
}

// Sign implements [Scheme].
func (s TimestampBody) Sign(h http.Header, id string, at time.Time, body []byte, keys *Keyring) error {
	names := s.names()
	if err := names.beforeSigning(h, ownIDs, id, at); err != nil {
		return err
	}
	try := keys.signing(at)
	if try.n == 0 {
		return ErrNoValidKey
	}
	for _, i := range try.index[:try.n] {
		key := keys.keys[i].Secret.m.text
		if key == nil {
			continue
		}
		timestamp := strconv.FormatInt(at.Unix(), 10)
		mac := key.mac("", timestamp, body)
		var digits [2 * sha256.Size]byte
		hex.Encode(digits[:], mac[:])
		names.set(h, id, timestamp, string(digits[:]))
		return nil
	}
	return fmt.Errorf("%w: %s needs an HMAC secret", ErrSecretUnsuited, s.Name())
}

// decodeLowerHex refuses upper case, which the scheme never sends, so that one MAC
// has one spelling.
func decodeLowerHex(dst *[sha256.Size]byte, s string) bool {
	if len(s) != 2*len(dst) {
		return false
	}
	var text [2 * sha256.Size]byte // of constant length: no bounds to check
	copy(text[:], s)
	var seen byte
	for i := 0; i < len(dst); i += 2 {
		a, b := lowerHex[text[2*i]], lowerHex[text[2*i+1]]
		c, d := lowerHex[text[2*i+2]], lowerHex[text[2*i+3]]
		seen |= a | b | c | d
		dst[i], dst[i+1] = a<<4|b, c<<4|d
	}
	return seen < notHex
}

const notHex = 0x10

// lowerHex has the value of each lowercase digit, and notHex for all other bytes.
var lowerHex = func() (table [256]byte) {
	for c := range table {
		table[c] = notHex
	}
	for value, c := range []byte("0123456789abcdef") {
		table[c] = byte(value)
	}
	return table
}()
