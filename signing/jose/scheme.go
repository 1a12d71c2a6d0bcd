package jose

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/surehook/surehook/signing"
)

// scheme verifies one sender's tokens.
type scheme struct {
	t     Token
	facts *signing.Described
}

// publicScheme is a scheme whose keys are the sender's.
type publicScheme struct{ *scheme }

var (
	_ signing.FactReader = (*scheme)(nil)
	_ signing.KeyChecker = (*scheme)(nil)
	_ signing.OwnKeys    = publicScheme{}
)

// OwnKeys says that the scheme needs no keyring.
func (publicScheme) OwnKeys() {}

// New returns the scheme of a token. It is safe for concurrent use, and starts nothing.
// Under RS256 and ES256 it is a [signing.OwnKeys]. The error names all problems.
func New(t Token) (signing.FactReader, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	t.Issuers, t.True = slices.Clone(t.Issuers), slices.Clone(t.True)
	pinned := map[string]string{}
	for name, text := range t.Claims {
		pinned[name] = text
	}
	t.Claims = pinned
	facts, err := signing.NewDescribed(signing.Description{ // for its reading of bodies alone
		Name: t.Name, SignatureHeader: t.Header, Signed: "{body}", IDField: t.IDField, TypeField: t.TypeField, TimeField: t.TimeField,
	})
	if err != nil {
		return nil, fmt.Errorf("jose: token %q: %w", t.Name, err)
	}
	s := &scheme{t: t, facts: facts}
	if t.Keys != nil {
		return publicScheme{s}, nil
	}
	return s, nil
}

// Name returns the Token's Name.
func (s *scheme) Name() string { return s.t.Name }

// CoversBody says whether the token has the body's hash.
func (s *scheme) CoversBody() bool { return s.t.BodyHash != "" }

// ReplayDefence is [signing.TimeWindow] for a token that covers the body. Any other has a
// time, which is not the request's: it comes with many of them.
func (s *scheme) ReplayDefence() signing.ReplayDefence {
	if s.CoversBody() {
		return signing.TimeWindow
	}
	return signing.DedupAlone
}

// Precheck implements [signing.Scheme].
func (s *scheme) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	_, err := s.precheck(h, now, tolerance)
	return err
}

func (s *scheme) precheck(h http.Header, now time.Time, tolerance time.Duration) (*parsed, error) {
	if s == nil || s.facts == nil {
		return nil, signing.ErrNoValidKey
	}
	p, err := s.find(h)
	if err != nil {
		return nil, err
	}
	return p, s.timely(p.claims, now, tolerance)
}

// timely compares the claims' times with the clock here.
func (s *scheme) timely(c claims, now time.Time, tolerance time.Duration) error {
	for _, bound := range []struct {
		claim      string
		past       bool // it must lie in the past
		tolerance  time.Duration
		mustBe, on bool
	}{
		{claim: "exp", tolerance: tolerance, mustBe: s.t.MaxAge == 0, on: true},
		{claim: "nbf", past: true, tolerance: tolerance, on: true},
		{claim: "iat", past: true, tolerance: tolerance, on: true},
		{claim: "iat", tolerance: s.t.MaxAge, mustBe: true, on: s.t.MaxAge != 0},
	} {
		at, there, ok := c.at(bound.claim)
		switch {
		case !bound.on, !there && !bound.mustBe:
			continue
		case !there || !ok:
			return fmt.Errorf("jose: %w: the token's %s is no time in seconds", signing.ErrTimestampOutsideWindow, bound.claim)
		}
		skew := now.Sub(at) // limited to what a Duration holds
		if tolerance < 0 || bound.past && skew < -bound.tolerance || !bound.past && skew > bound.tolerance {
			return &signing.TimestampError{Timestamp: at, Skew: skew.Truncate(time.Second), Tolerance: bound.tolerance}
		}
	}
	return nil
}

// Verify implements [signing.Scheme]. All that needs no key is checked first, so that a key
// is fetched only for a token in which all else is right. Besides package signing's errors it
// returns [ErrKeys].
func (s *scheme) Verify(m signing.Message, keys *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	p, err := s.precheck(m.Header, now, tolerance)
	if err != nil {
		return signing.Verified{}, err
	}
	if err := s.pinned(p.claims); err != nil {
		return signing.Verified{}, err
	}
	if err := s.covered(p.claims, m); err != nil {
		return signing.Verified{}, err
	}
	id, err := s.signed(p, keys, now)
	if err != nil {
		return signing.Verified{}, err
	}
	at, _, _ := p.claims.at("iat")
	v := signing.Verified{Scheme: s.t.Name, KeyID: id, Timestamp: at}
	if s.t.ByToken {
		v.ID = p.eventID()
	}
	return v, nil
}

// eventID is of what is signed and not of the signature: an ECDSA signature has a second form.
func (p *parsed) eventID() string {
	sum := sha256.Sum256([]byte(p.text))
	return "token-" + hex.EncodeToString(sum[:])
}

func mismatch(problem string) error {
	return fmt.Errorf("jose: %w: %s", signing.ErrSignatureMismatch, problem)
}

func (s *scheme) pinned(c claims) error {
	if len(s.t.Issuers) > 0 && !slices.Contains(s.t.Issuers, c.text("iss")) {
		return mismatch("the token's iss is not one of the Issuers")
	}
	if s.t.Audience != "" && !c.audience(s.t.Audience) {
		return mismatch("the token's aud is not the Audience")
	}
	for name, want := range s.t.Claims {
		if raw, there := c[name]; !there || len(raw) == 0 || raw[0] != '"' || c.text(name) != want {
			return mismatch("the token's " + name + " is not the one that is pinned")
		}
	}
	for _, name := range s.t.True {
		if string(c[name]) != "true" {
			return mismatch("the token's " + name + " is not true")
		}
	}
	return nil
}

func (s *scheme) covered(c claims, m signing.Message) error {
	t := &s.t
	if _, there := c[t.BodyHash]; t.BodyHash != "" && (there || len(m.Body) > 0 || !t.NoBodyNoHash) && !c.hashes(t.BodyHash, m.Body) {
		return mismatch("the token's " + t.BodyHash + " is not the body's SHA-256")
	}
	if t.URLHash != "" && !c.hashes(t.URLHash, []byte(t.URL)) {
		return mismatch("the token's " + t.URLHash + " is not the SHA-256 of the URL")
	}
	if t.QueryHash == "" {
		return nil
	}
	request, err := canonical(m.Method, m.URL, t.BasePath)
	if err != nil {
		return mismatch(err.Error())
	}
	if !c.hashes(t.QueryHash, []byte(request)) {
		return mismatch("the token's " + t.QueryHash + " is not the hash of the method, the path and the query")
	}
	return nil
}

func (c claims) hashes(name string, text []byte) bool {
	sum := sha256.Sum256(text)
	return subtle.ConstantTimeCompare([]byte(c.text(name)), []byte(hex.EncodeToString(sum[:]))) == 1
}

// signed returns the id of the key with which the token is signed.
func (s *scheme) signed(p *parsed, keys *signing.Keyring, now time.Time) (string, error) {
	if s.t.Keys == nil {
		return keys.VerifyText(hmacOf(p.text), p.signature, now)
	}
	key, err := s.t.Keys.Key(p.id)
	switch {
	case errors.Is(err, signing.ErrNoValidKey):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrKeys, err)
	case !fits(s.t.Algorithm, key):
		return "", fmt.Errorf("jose: %w: the key of that kid is not one for %s", signing.ErrNoValidKey, s.t.Algorithm)
	}
	if methods[s.t.Algorithm].Verify(p.text, p.signature, key) != nil {
		return "", signing.ErrSignatureMismatch
	}
	return p.id, nil
}

var methods = map[Algorithm]jwt.SigningMethod{RS256: jwt.SigningMethodRS256, ES256: jwt.SigningMethodES256}

// hmacOf is never keyed by a public key, with which anybody could make HMACs.
func hmacOf(text string) *signing.Text {
	return &signing.Text{Algorithm: signing.HMACSHA256, Key: signing.TextKey, Bytes: []byte(text)}
}

// CheckKeys implements [signing.KeyChecker].
func (s *scheme) CheckKeys(keys *signing.Keyring) error {
	if s.t.Keys != nil || keys.Suits(hmacOf("")) {
		return nil
	}
	return fmt.Errorf("%w: the keyring has no text with which %s can verify: read it with ParseTextSecret", signing.ErrSecretUnsuited, s.t.Name)
}

// Sign returns an error: the sender alone makes its tokens.
func (s *scheme) Sign(http.Header, string, time.Time, []byte, *signing.Keyring) error {
	return fmt.Errorf("%w: %s makes its tokens itself: sign with StandardWebhooks", signing.ErrSecretUnsuited, s.t.Name)
}

// Facts implements [signing.FactReader]. All that a token does not cover is Unsigned.
func (s *scheme) Facts(m signing.Message, v signing.Verified) signing.Facts {
	f := s.facts.Facts(m, signing.Verified{})
	if !s.CoversBody() {
		return signing.Facts{UnsignedID: signing.Unsigned(f.ID), UnsignedType: signing.Unsigned(f.Type)}.Of(m)
	}
	if v.ID != "" {
		f.ID = v.ID
	}
	return f
}
