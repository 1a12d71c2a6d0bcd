package signing

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// These bound the work that one header can cause. Each signature of Ed25519 has the whole body
// hashed, and no sender has more keys than that.
const (
	maxSignatures = 16
	maxEdwards    = maxLiveKeys
)

// StandardWebhooks signs "ID.TIMESTAMP.BODY" as Standard Webhooks 1.0.0 says and sends a
// list of signatures, separated by spaces. One is "v1," and the base64 of an HMAC-SHA256,
// keyed by the bytes that the secret's base64 stands for, or "v1a," and the base64 of an
// Ed25519 signature.
//
// It signs with every valid key that suits it, newest first, and last with those whose
// NotBefore has not come. So a receiver may have the new secret or the previous one during
// a rotation. An HMAC secret suits only in the form "whsec_" and base64, which tells a
// receiver how to read it. Verifying also takes the base64 without the prefix, as other
// libraries do.
//
// In a list, signatures of other versions and undecodable ones match nothing. More than
// 16 entries make the header malformed, and more than 4 signatures of v1a. So does a comma
// inside an entry, which is the trace of two headers that were joined.
//
// An id has 1 to 256 visible ASCII characters, and no full stop, with which the signed text
// could be split in two ways.
//
// The fields are names of headers; empty ones mean Webhook-Id, Webhook-Timestamp
// and Webhook-Signature.
type StandardWebhooks struct {
	IDHeader        string
	TimestampHeader string
	SignatureHeader string

	name string
}

var _ FactReader = StandardWebhooks{}

// Name returns "standard-webhooks", or "svix" for the result of [Svix].
func (s StandardWebhooks) Name() string { return cmp.Or(s.name, "standard-webhooks") }

func (s StandardWebhooks) names() headerNames {
	return headerNames{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}.or(s.IDHeader, s.TimestampHeader, s.SignatureHeader)
}

func (s StandardWebhooks) check(keys *Keyring) error {
	return s.names().checkWith(keys, s.Name(), func(m *material) bool { return m.decoded != nil || m.verify != nil })
}

// Precheck implements [Scheme].
func (s StandardWebhooks) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	return s.verifying().Precheck(h, now, tolerance)
}

// Verify implements [Scheme].
func (s StandardWebhooks) Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error) {
	return s.verifying().Verify(m, keys, now, tolerance)
}

func (s StandardWebhooks) verifying() *standardWebhooks {
	return &standardWebhooks{s.Name(), s.names()}
}

// standardWebhooks is the verifying half of a StandardWebhooks, with its names
// worked out.
type standardWebhooks struct {
	name  string
	names headerNames
}

func (s *standardWebhooks) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	var r standardHeaders
	return s.read(h, now, tolerance, &r)
}

type standardHeaders struct {
	id, timestamp string
	unix          int64
	list          signatureList
}

func (s *standardWebhooks) read(h http.Header, now time.Time, tolerance time.Duration, r *standardHeaders) error {
	signature := find(h, s.names.signature)
	if err := signature.signatureOnce(s.names.signature); err != nil {
		return err
	}
	if problem := r.list.parse(signature.text); problem != "" {
		return malformed(s.names.signature, problem)
	}
	id := find(h, s.names.id)
	if err := id.once(s.names.id); err != nil {
		return err
	}
	if err := dottedIDs.check(s.names.id, id.text); err != nil {
		return err
	}
	timestamp := find(h, s.names.timestamp)
	r.id, r.timestamp = id.text, timestamp.text
	var err error
	r.unix, err = timestamp.timestampIn(s.names.timestamp, now, tolerance)
	return err
}

func (s *standardWebhooks) Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error) {
	var r standardHeaders
	if err := s.read(m.Header, now, tolerance, &r); err != nil {
		return Verified{}, err
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	var content []byte // what Ed25519 verifies, in one piece
	for _, i := range try.index[:try.n] {
		secret := keys.keys[i].Secret.m
		matches := false
		switch {
		case secret.decoded != nil:
			failure = ErrSignatureMismatch
			matches = r.list.matchHMAC(secret.decoded, &r, m.Body)
		case secret.verify != nil:
			failure = ErrSignatureMismatch
			if content == nil && r.list.nEd > 0 {
				content = signedContent(r.id, r.timestamp, m.Body)
			}
			matches = r.list.matchEd25519(secret.verify, content)
		}
		if matches {
			keys.matched(i)
			return Verified{Scheme: s.name, KeyID: keys.keys[i].ID, Timestamp: time.Unix(r.unix, 0).UTC(), ID: r.id}, nil
		}
	}
	return Verified{}, failure
}

// Sign implements [Scheme].
func (s StandardWebhooks) Sign(h http.Header, id string, at time.Time, body []byte, keys *Keyring) error {
	names := s.names()
	if err := names.beforeSigning(h, dottedIDs, id, at); err != nil {
		return err
	}
	try := keys.listed(at)
	if try.n == 0 {
		return ErrNoValidKey
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var room [256]byte // enough for most; a larger one would have to be cleared each time
	value := room[:0]
	for _, i := range try.index[:try.n] {
		switch secret := keys.keys[i].Secret.m; {
		case secret.decoded != nil && secret.prefixed:
			mac := secret.decoded.mac(id, timestamp, body)
			value = appendSignature(value, "v1,", mac[:])
		case secret.sign != nil:
			value = appendSignature(value, "v1a,", secret.sign(signedContent(id, timestamp, body)))
		}
	}
	if len(value) == 0 {
		return fmt.Errorf("%w: %s needs a secret that is whsec_ or whsk_ and base64", ErrSecretUnsuited, s.Name())
	}
	names.set(h, id, timestamp, string(value))
	return nil
}

// listed reports whether a sender of this module has signatures of the secret in a list.
func (m *material) listed() bool { return m.prefixed || m.verify != nil }

func appendSignature(dst []byte, version string, signature []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ' ')
	}
	return base64.StdEncoding.AppendEncode(append(dst, version...), signature)
}

func signedContent(id, timestamp string, body []byte) []byte {
	content := make([]byte, 0, len(id)+len(timestamp)+len("..")+len(body))
	return append(appendHead(content, id, timestamp), body...)
}

// signatureList has the signatures of a header: those of version v1 decoded, and the
// number of those of v1a that decode.
type signatureList struct {
	hmac  [maxSignatures][sha256.Size]byte
	nHMAC int
	nEd   int
	text  string
}

// parse returns the problem of the value, or "".
func (l *signatureList) parse(value string) (problem string) {
	if value == "" {
		return "is malformed: it is empty"
	}
	l.text = value
	for n, rest, more := 1, value, true; more; n++ {
		if n > maxSignatures {
			return fmt.Sprintf("is malformed: it has more than %d signatures", maxSignatures)
		}
		var entry string
		entry, rest, more = strings.Cut(rest, " ")
		version, signature, _ := strings.Cut(entry, ",")
		if strings.IndexByte(signature, ',') >= 0 {
			return "is malformed: a signature has a second comma: signatures are separated by spaces"
		}
		switch version {
		case "v1":
			if decodeSignature(l.hmac[l.nHMAC][:], signature) {
				l.nHMAC++
			}
		case "v1a":
			var room [ed25519.SignatureSize]byte
			if decodeSignature(room[:], signature) {
				l.nEd++
			}
			if l.nEd > maxEdwards {
				return fmt.Sprintf("is malformed: it has more than %d signatures of v1a", maxEdwards)
			}
		}
	}
	if l.nHMAC+l.nEd == 0 {
		return `is malformed: it has no signature of the form "v1,BASE64" or "v1a,BASE64"`
	}
	return ""
}

// decodeSignature fills dst from strict base64 of exactly its length.
func decodeSignature(dst []byte, signature string) bool {
	var text [(ed25519.SignatureSize + 2) / 3 * 4]byte
	if len(signature) != base64.StdEncoding.EncodedLen(len(dst)) {
		return false
	}
	// The length leaves no room for the line breaks that the decoder would skip.
	var decoded [ed25519.SignatureSize + 2]byte
	n, err := strictBase64.Decode(decoded[:], text[:copy(text[:], signature)])
	if err != nil || n != len(dst) {
		return false
	}
	copy(dst, decoded[:n])
	return true
}

func (l *signatureList) matchHMAC(key *hmacKey, r *standardHeaders, body []byte) bool {
	if l.nHMAC == 0 {
		return false
	}
	mac := key.mac(r.id, r.timestamp, body)
	match := 0
	for i := range l.hmac[:l.nHMAC] {
		match |= subtle.ConstantTimeCompare(mac[:], l.hmac[i][:])
	}
	return match == 1
}

func (l *signatureList) matchEd25519(verify func(message, signature []byte) bool, content []byte) bool {
	match := false
	for entry := range strings.SplitSeq(l.text, " ") {
		text, found := strings.CutPrefix(entry, "v1a,")
		if !found {
			continue
		}
		signature := make([]byte, ed25519.SignatureSize)
		if decodeSignature(signature, text) && verify(content, signature) {
			match = true
		}
	}
	return match
}
