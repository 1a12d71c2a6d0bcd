package signing

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Twilio is the scheme of Twilio's webhooks:
//
//	X-Twilio-Signature: vOEb5UThFn24KEfnOFLQY2AE5FY=
//
// which is the base64 HMAC-SHA1 of the URL that Twilio has called. For a form, the names
// and values of its parameters follow, sorted and with nothing between them. For any
// other body, the URL ends with the body's SHA-256 as the parameter bodySHA256, which
// Verify checks. The key is the text of the account's auth token: read it with
// [ParseTextSecret]. While a token is rotated the receiver's keyring holds the primary
// and the secondary one.
//
// Since Twilio signs some URLs with their port and some without, both are tried, at two
// MACs for each key instead of one. A form of more than 1000 parameters, or one that is
// not well-formed, matches nothing.
//
// Replay defence: [DedupAlone]: the signature covers no time. Everything rests on
// deduplication, and the body's bytes will not do for that: the order of a form's
// parameters and their percent-encoding can be changed under the same signature.
// [Facts].DedupKey therefore goes by the text that was signed. The header
// I-Twilio-Idempotency-Token is UnsignedID. Nothing stands between the names and the values in
// that text, so that whoever captures a request can cut them elsewhere: refuse a form without
// the parameters that you need.
//
// Source: https://www.twilio.com/docs/usage/security#validating-requests, values from the
// tests of twilio-go, and twilio-go itself. If a name comes several times, its different
// values are signed in order, as in Twilio's libraries for Python and JavaScript. The
// library for Go reads only the first one.
type Twilio struct {
	origin  [2]string // scheme and host, with a port and without
	path    string
	query   string
	scratch sync.Pool // of *twilioText
}

var _ FactReader = (*Twilio)(nil)

const (
	twilioSignature = "X-Twilio-Signature"
	twilioID        = "I-Twilio-Idempotency-Token"
	twilioBodyHash  = "bodySHA256="
	maxFormPairs    = 1000
)

// NewTwilio returns the scheme for webhooks at a URL, which is given as it is configured
// at Twilio. Scheme, host and path are taken from this URL, because proxies change them.
// The query is taken from [Message].URL, because Twilio adds to it. A message's path must
// be the same.
func NewTwilio(webhookURL string) (*Twilio, error) {
	if err := checkURL(webhookURL); err != nil {
		return nil, fmt.Errorf("signing: the URL of Twilio's webhooks: %w", err)
	}
	if err := HMACSHA1.allowed(); err != nil {
		return nil, fmt.Errorf("signing: twilio: %w", err)
	}
	scheme, rest, _ := strings.Cut(webhookURL, "://")
	host, target := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, target = rest[:i], rest[i:]
	}
	t := new(Twilio)
	t.path, t.query, _ = strings.Cut(target, "?")
	if strings.Contains(t.query, twilioBodyHash) {
		return nil, errors.New("signing: the URL of Twilio's webhooks has the parameter bodySHA256, which Twilio adds: give it without")
	}
	with, without := host, host
	u, _ := url.Parse(webhookURL)
	if port := u.Port(); port != "" {
		without = strings.TrimSuffix(host, ":"+port)
	} else {
		with += map[string]string{"https": ":443", "http": ":80"}[strings.ToLower(scheme)]
	}
	t.origin = [2]string{scheme + "://" + without, scheme + "://" + with}
	return t, nil
}

// Name returns "twilio".
func (t *Twilio) Name() string { return "twilio" }

// ReplayDefence is [DedupAlone].
func (t *Twilio) ReplayDefence() ReplayDefence { return DedupAlone }

func (t *Twilio) check(keys *Keyring) error {
	if t.origin[0] == "" {
		return errors.New("signing: a Twilio that was not made by NewTwilio has no URL")
	}
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return k.Secret.m.text != nil }) {
		return fmt.Errorf("%w: the keyring has no key with which twilio can verify", ErrSecretUnsuited)
	}
	return nil
}

// Precheck implements [Scheme].
func (t *Twilio) Precheck(h http.Header, _ time.Time, _ time.Duration) error {
	var stated digest
	return t.read(h, &stated)
}

func (t *Twilio) read(h http.Header, stated *digest) error {
	if t.origin[0] == "" { // a zero Twilio
		return ErrNoValidKey
	}
	signature := find(h, twilioSignature)
	if err := signature.signatureOnce(twilioSignature); err != nil {
		return err
	}
	if !decodeBase64(stated, HMACSHA1.size(), signature.text) {
		return malformed(twilioSignature, "is malformed: it must be "+Base64.form(HMACSHA1.size()))
	}
	return nil
}

// Verify implements [Scheme].
func (t *Twilio) Verify(m Message, keys *Keyring, now time.Time, _ time.Duration) (Verified, error) {
	var stated digest
	if err := t.read(m.Header, &stated); err != nil {
		return Verified{}, err
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	text := t.text()
	defer t.giveBack(text)
	signed := t.fill(text, m.URL, m.Body)
	for _, i := range try.index[:try.n] {
		key := keys.keys[i].Secret.m.text
		if key == nil {
			continue
		}
		failure = ErrSignatureMismatch
		match := 0
		for _, origin := range t.origin {
			if signed {
				mac := text.mac(key, origin)
				match |= subtle.ConstantTimeCompare(mac[:HMACSHA1.size()], stated[:HMACSHA1.size()])
			}
		}
		if match == 1 {
			keys.matched(i)
			return Verified{Scheme: t.Name(), KeyID: keys.keys[i].ID}, nil
		}
	}
	return Verified{}, failure
}

// Sign implements [Scheme], for a POST to the URL that NewTwilio was given. A body
// whose Content-Type in h is there and is no form must go to [Twilio.HashURL] instead.
func (t *Twilio) Sign(h http.Header, id string, at time.Time, body []byte, keys *Keyring) error {
	if err := (headerNames{id: twilioID, timestamp: twilioSignature}).beforeSigning(h, ownIDs, id, at); err != nil {
		return err
	}
	if err := t.check(nil); err != nil {
		return err
	}
	try := keys.signing(at)
	if try.n == 0 {
		return ErrNoValidKey
	}
	target := t.target()
	if kind := find(h, "Content-Type").text; kind != "" && !strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		target = t.hashTarget(body)
	}
	text := t.text()
	defer t.giveBack(text)
	if !t.fill(text, target, body) {
		return fmt.Errorf("signing: twilio signs well-formed forms of at most %d parameters, and other bodies if the Content-Type says so", maxFormPairs)
	}
	for _, i := range try.index[:try.n] {
		if key := keys.keys[i].Secret.m.text; key != nil {
			mac := text.mac(key, t.origin[0])
			setHeader(h, twilioSignature, string(Base64.appendTo(nil, mac[:HMACSHA1.size()])))
			setHeader(h, twilioID, id)
			return nil
		}
	}
	return fmt.Errorf("%w: twilio needs an HMAC secret", ErrSecretUnsuited)
}

// HashURL returns the URL for a body that is no form: it has the body's SHA-256 as a
// parameter.
func (t *Twilio) HashURL(body []byte) string { return t.origin[0] + t.hashTarget(body) }

func (t *Twilio) target() string {
	if t.query == "" {
		return t.path
	}
	return t.path + "?" + t.query
}

func (t *Twilio) hashTarget(body []byte) string {
	sum := sha256.Sum256(body)
	query := twilioBodyHash + hex.EncodeToString(sum[:])
	if t.query != "" {
		query = t.query + "&" + query
	}
	return t.path + "?" + query
}

// Facts implements [FactReader].
func (t *Twilio) Facts(m Message, _ Verified) Facts {
	text := t.text()
	defer t.giveBack(text)
	f := Facts{UnsignedID: unsigned(m.Header, twilioID)}.Of(m)
	if t.fill(text, m.URL, m.Body) {
		f.text = append([]byte(t.origin[0]), text.signed...)
	}
	return f
}
