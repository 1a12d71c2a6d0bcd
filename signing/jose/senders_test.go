package jose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

func TestSendersAreAccepted(t *testing.T) {
	for name, s := range senders() {
		v := s.verifier(t)
		m := s.message()
		require.NoError(t, v.Precheck(m.Header), name)
		verified, facts, err := v.VerifyFacts(m)
		require.NoError(t, err, name)
		require.Equal(t, name, verified.Scheme)
		require.NotEmpty(t, verified.KeyID)
		require.Contains(t, facts.ID, s.id)
		require.Equal(t, verified.ID, facts.ID)
		require.NotEmpty(t, facts.DedupKey())
	}
}

// Facts that a token does not cover are Unsigned, and a verifier is made only if its
// configuration says so.
func TestUncoveredBodies(t *testing.T) {
	for name, s := range senders() {
		covers := s.claims["payload_hash"] != nil || s.claims["request_body_sha256"] != nil
		_, facts, err := s.verifier(t).VerifyFacts(s.message())
		require.NoError(t, err)
		keys := must(signing.NewKeyring(signing.Key{Secret: hmacOf}))
		for _, cfg := range []signing.VerifierConfig{{Deduplicated: true}, {UnsignedBody: true}} {
			cfg.Schemes = []signing.Scheme{s.scheme}
			_, err = signing.NewVerifier(keys, &cfg)
			require.Equal(t, covers, err == nil, "%s: %v", name, err)
		}
		m := s.message()
		m.Body = []byte(`{"message":{"messageId":"1"},"webhookEvent":"x"}`)
		_, err = s.verifier(t).Verify(m)
		if !covers {
			require.Empty(t, facts.ID+facts.Type, name)
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, name)
	}
	_, facts, err := senders()["google-pubsub"].verifier(t).VerifyFacts(senders()["google-pubsub"].message())
	require.NoError(t, err)
	require.Equal(t, signing.Unsigned("2070443601311540"), facts.UnsignedID)
}

var refusals = []error{
	signing.ErrSignatureMismatch, signing.ErrNoValidKey, signing.ErrMalformedHeader, signing.ErrMissingHeader, signing.ErrRepeatedHeader, signing.ErrTimestampOutsideWindow,
}

func refused(t *testing.T, v *signing.Verifier, m signing.Message, what ...any) {
	t.Helper()
	refusedFor(t, nil, v, m, what...)
}

// refusedFor also wants one error of these; nil is any.
func refusedFor(t *testing.T, want error, v *signing.Verifier, m signing.Message, what ...any) {
	t.Helper()
	_, err := v.Verify(m)
	require.Error(t, err, what...)
	require.True(t, slices.ContainsFunc(refusals, func(of error) bool { return errors.Is(err, of) }), "%v: %v is no refusal", what, err)
	for _, values := range m.Header {
		require.False(t, len(values[0]) > 20 && strings.Contains(err.Error(), values[0]))
	}
	require.True(t, want == nil || errors.Is(err, want), "%v: %v", what, err)
}

// No byte of a header, of a body that is covered or of what else is covered can be changed.
func TestTamperedRequestsAreRefused(t *testing.T) {
	for name, s := range senders() {
		v := s.verifier(t)
		whole := s.message()
		value := whole.Header[s.name][0]
		for i := range value {
			for _, bit := range []byte{1, 2, 4, 8, 16, 32} {
				changed := []byte(value)
				changed[i] ^= bit
				m := whole
				m.Header = http.Header{s.name: {string(changed)}}
				refused(t, v, m, name, string(changed))
			}
		}
		for what, changed := range map[string]string{
			"cut": value[:len(value)-1], "longer": value + "A", "padded": value + "=", "a line": value[:40] + "\n" + value[40:], "a part more": value + ".e30",
			"a line in the signature": value[:len(value)-9] + "\n" + value[len(value)-9:], "no signature": value[:strings.LastIndexByte(value, '.')+1], "two parts": value[:strings.LastIndexByte(value, '.')], "a space": value + " ",
			"empty": "", "prefix alone": s.prefix, "another prefix": "bearer" + strings.TrimPrefix(value, "Bearer"), "very long": value + strings.Repeat("A", 9000),
		} {
			if changed == value || what == "another prefix" && s.prefix == "" {
				continue
			}
			m := whole
			m.Header = http.Header{s.name: {changed}}
			refused(t, v, m, name, what)
		}
		if s.scheme.(interface{ CoversBody() bool }).CoversBody() {
			for i := range s.body {
				m := whole
				m.Body = []byte(s.body)
				m.Body[i] ^= 1
				refusedFor(t, signing.ErrSignatureMismatch, v, m, name)
			}
			for _, body := range []string{"", s.body + " ", s.body[1:]} {
				m := whole
				m.Body = []byte(body)
				refusedFor(t, signing.ErrSignatureMismatch, v, m, name)
			}
		}
	}
}

// Claims that the sender itself has signed are compared all the same.
func TestClaimsArePinned(t *testing.T) {
	for name, s := range senders() {
		v := s.verifier(t)
		for _, claim := range s.counts {
			for _, value := range []any{nil, "other", "", 1, true, false, []string{"other"}, map[string]string{}} {
				if value == s.claims[claim] {
					continue
				}
				m := s.carrying(token(s.alg, s.key, s.header, s.claims.with(claim, value)))
				refusedFor(t, signing.ErrSignatureMismatch, v, m, name, claim, value)
			}
		}
		for _, claim := range s.times {
			for _, value := range []any{nil, "2026", "1764147600", -1, 1e30, true, []int{1}, 0, now.Unix() * 1000} {
				if claim != "exp" && value == nil && name != "plaid" && name != "vonage" || claim == "exp" && value == 1e30 {
					continue // not all need it
				}
				if claim == "exp" && value == now.Unix()*1000 || (claim == "iat" && name != "plaid" && name != "vonage" || claim == "nbf") && value == 0 {
					continue // far in the future, and long ago
				}
				m := s.carrying(token(s.alg, s.key, s.header, s.claims.with(claim, value)))
				refusedFor(t, signing.ErrTimestampOutsideWindow, v, m, name, claim, value)
				require.ErrorIs(t, v.Precheck(m.Header), signing.ErrTimestampOutsideWindow)
			}
		}
	}
}

func TestTimesOfTokens(t *testing.T) {
	for _, c := range []struct {
		sender, claim string
		at            time.Duration // from now
		want          error
	}{
		{"google-pubsub", "exp", -300 * time.Second, nil},
		{"google-pubsub", "exp", -301 * time.Second, signing.ErrTimestampOutsideWindow},
		{"google-pubsub", "iat", 300 * time.Second, nil},
		{"google-pubsub", "iat", 301 * time.Second, signing.ErrTimestampOutsideWindow},
		{"google-pubsub", "iat", -24 * time.Hour, nil},
		{"messagebird", "nbf", 301 * time.Second, signing.ErrTimestampOutsideWindow},
		{"plaid", "iat", -300 * time.Second, nil},
		{"plaid", "iat", -301 * time.Second, signing.ErrTimestampOutsideWindow},
		{"plaid", "iat", 301 * time.Second, signing.ErrTimestampOutsideWindow},
		{"vonage", "iat", -301 * time.Second, signing.ErrTimestampOutsideWindow},
	} {
		s := senders()[c.sender]
		_, err := s.verifier(t).Verify(s.carrying(token(s.alg, s.key, s.header, s.claims.with(c.claim, now.Add(c.at).Unix()))))
		require.ErrorIs(t, err, c.want, "%s: %s %v", c.sender, c.claim, c.at)
	}
	s := senders()["plaid"]
	_, err := s.verifier(t).Verify(s.carrying(token(s.alg, s.key, s.header, s.claims.with("iat", float64(now.Unix())+0.5))))
	require.NoError(t, err)
}

// Nobody can have another algorithm than the sender's used, nor a key for what it is not.
func TestAlgorithmsArePinned(t *testing.T) {
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	der := must(x509.MarshalPKIXPublicKey(&rsaKey.PublicKey))
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, s := range senders() {
		v := s.verifier(t)
		for alg, key := range map[string]any{
			"none": nil, "None": nil, "": nil, "HS256": public, "HS512": []byte(secret), "RS256": rsaKey, "ES256": ecKey, "ES384": p384, "PS256": rsaKey, "hs256": []byte(secret), "EdDSA": nil,
		} {
			if alg == s.alg {
				continue
			}
			m := s.carrying(token(alg, key, s.header.with("kid", kid), s.claims))
			refusedFor(t, signing.ErrMalformedHeader, v, m, name, alg)
		}
		// The algorithm that is right, with what is signed otherwise.
		wrong := map[string][]any{"RS256": {ecKey, []byte(secret), public, der}, "ES256": {rsaKey, []byte(secret), p384}, "HS256": {public, der, []byte(""), rsaKey, []byte(secret + "x")}}
		for _, key := range wrong[s.alg] {
			refused(t, v, s.carrying(token(s.alg, key, s.header, s.claims)), name)
		}
		text := segment(s.header.with("alg", s.alg)) + "." + segment(s.claims)
		for _, signature := range [][]byte{make([]byte, 64), make([]byte, 32), make([]byte, 256), {0}} {
			refused(t, v, s.carrying(text+"."+base64.RawURLEncoding.EncodeToString(signature)), name)
		}
		for _, header := range []fields{
			s.header.with("alg", nil), s.header.with("alg", 1), s.header.with("alg", []string{s.alg}), s.header.with("alg", s.alg).with("crit", []string{"x"}), s.header.with("alg", s.alg).with("crit", nil).with("crit", []string{}),
		} {
			text := segment(header) + "." + segment(s.claims)
			refusedFor(t, signing.ErrMalformedHeader, v, s.carrying(text+"."+base64.RawURLEncoding.EncodeToString(sign(s.alg, s.key, text))), name, header)
		}
	}
}

// A key of another kind under the kid, or too small a key, verifies nothing.
func TestKeysMustFit(t *testing.T) {
	s := senders()["google-pubsub"]
	small := must(rsa.GenerateKey(rand.Reader, 1024))
	p384 := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	others := jose.FixedKeys(map[string]crypto.PublicKey{kid: &small.PublicKey, "ec": &p384.PublicKey})
	for name, key := range map[string]any{"google-pubsub": small, "plaid": p384} {
		s := senders()[name]
		if s.scheme = must(jose.PubSub(audience, email, others)); name == "plaid" {
			s.scheme = must(jose.Plaid(others))
		}
		refusedFor(t, signing.ErrNoValidKey, s.verifier(t), s.carrying(token(s.alg, key, s.header, s.claims)))
	}
	for what, c := range map[string]struct {
		key any
		kid any
	}{
		"ECDSA for RSA": {rsaKey, "ec"}, "unknown": {rsaKey, "other"}, "none": {rsaKey, nil}, "empty": {rsaKey, ""}, "long": {rsaKey, strings.Repeat("a", 129)}, "a space": {rsaKey, "a b"},
		"a number": {rsaKey, 1}, "another's": {must(rsa.GenerateKey(rand.Reader, 2048)), kid}, "small": {small, kid},
	} {
		refused(t, s.verifier(t), s.carrying(token("RS256", c.key, s.header.with("kid", c.kid), s.claims)), what)
	}
}

// A public key in the keyring is no secret: with its text anybody could make an HMAC.
func TestPublicKeysAreNoSecrets(t *testing.T) {
	s := senders()["vonage"]
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(&ecKey.PublicKey))}))
	public := must(signing.ParseECDSAPublicKey(text))
	cfg := &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}, Now: func() time.Time { return now }}
	_, err := signing.NewVerifier(must(signing.NewKeyring(signing.Key{Secret: public})), cfg)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	v, err := signing.NewVerifier(must(signing.NewKeyring(signing.Key{Secret: public}, signing.Key{Secret: hmacOf})), cfg)
	require.NoError(t, err)
	for _, key := range []string{text, public.Reveal()} {
		refusedFor(t, signing.ErrSignatureMismatch, v, s.carrying(token("HS256", []byte(key), s.header, s.claims)))
	}
}

// During a rotation both secrets are taken, until the older one ends.
func TestSecretsAreRotated(t *testing.T) {
	s := senders()["vonage"]
	other := "another secret of thirty letters"
	clock := now
	ring := must(signing.NewKeyring(signing.Key{ID: "old", Secret: hmacOf, NotAfter: now.Add(time.Minute)}, signing.Key{ID: "new", Secret: must(signing.ParseTextSecret(other))}))
	v, err := signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: []signing.Scheme{s.scheme}, Now: func() time.Time { return clock }})
	require.NoError(t, err)
	for id, key := range map[string]string{"old": secret, "new": other} {
		verified, err := v.Verify(s.carrying(token("HS256", []byte(key), s.header, s.claims)))
		require.NoError(t, err)
		require.Equal(t, id, verified.KeyID)
	}
	clock = now.Add(2 * time.Minute)
	refused(t, v, s.message())
}

func TestHeadersAreThereOnce(t *testing.T) {
	for name, s := range senders() {
		v, m := s.verifier(t), s.message()
		value := m.Header[s.name]
		for _, h := range []http.Header{{s.name: {value[0], value[0]}}, {strings.ToUpper(s.name): value, strings.ToLower(s.name): value}} {
			refusedFor(t, signing.ErrRepeatedHeader, v, signing.Message{Header: h, Body: m.Body}, name)
			require.ErrorIs(t, v.Precheck(h), signing.ErrRepeatedHeader)
		}
		require.ErrorIs(t, v.Precheck(http.Header{}), signing.ErrNotSigned)
		require.ErrorIs(t, s.scheme.Sign(http.Header{}, "", now, nil, nil), signing.ErrSecretUnsuited)
	}
}

// The rest of a token's header, beside alg and kid, does not matter.
func TestNothingElseOfTheHeaderIsRead(t *testing.T) {
	for name, s := range senders() {
		header := s.header.with("jku", "https://evil.example/jwks").with("x5u", "https://evil.example/").with("jwk", fields{"kty": "RSA"}).with("typ", "other")
		_, err := s.verifier(t).Verify(s.carrying(token(s.alg, s.key, header, s.claims)))
		require.NoError(t, err, name)
	}
}

// A request with another target than the one that is hashed is refused.
func TestTargets(t *testing.T) {
	s := senders()["atlassian-connect"]
	for target, want := range map[string]bool{
		s.url: true, "/jira/hooks?a=1&user_key=a%20b&a=2": true, "/jira/hooks/?a=1&user_key=a%20b&a=2&jwt=y": true,
		"/jira/hooks": false, "/hooks?user_key=a+b&a=2&a=1": false, "/jira/hooks?user_key=a+b&a=2&a=1&b=": false, "/jira/Hooks?user_key=a+b&a=2&a=1": false, "/jira/hooks?user_key=a+b&a=2&a=%zz": false, "": false, "x": false,
	} {
		m := s.message()
		m.URL = target
		_, err := s.verifier(t).Verify(m)
		require.Equal(t, want, err == nil, "%s: %v", target, err)
	}
	m := s.message()
	m.Method = http.MethodPut
	refused(t, s.verifier(t), m)
}
