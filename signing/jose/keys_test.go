package jose_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

func jwkOf(id string, key crypto.PublicKey) fields {
	encode := base64.RawURLEncoding.EncodeToString
	switch key := key.(type) {
	case *rsa.PublicKey:
		return fields{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": id, "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes())}
	case *ecdsa.PublicKey:
		point := must(key.Bytes())[1:]
		return fields{"kty": "EC", "alg": "ES256", "use": "sig", "kid": id, "crv": "P-256", "x": encode(point[:len(point)/2]), "y": encode(point[len(point)/2:])}
	}
	return nil
}

func setOf(keys ...fields) string {
	return string(must(json.Marshal(map[string]any{"keys": keys})))
}

// host answers in place of a sender's host, and counts.
type host struct {
	mu     sync.Mutex
	asked  []string
	status int
	answer func(body string) string
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, r.Method+" "+r.URL.String())
	if h.status == 0 {
		return nil, errors.New("connection refused")
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	return &http.Response{StatusCode: h.status, Body: io.NopCloser(strings.NewReader(h.answer(string(body)))), Request: r}, nil
}

func (h *host) says(text string) { h.status, h.answer = 200, func(string) string { return text } }

// fetched is Pub/Sub with keys that come from h.
func fetched(t *testing.T, h *host, clock *time.Time) sender {
	t.Helper()
	keys, err := jose.GoogleKeys(&jose.KeysConfig{Now: func() time.Time { return *clock }})
	require.NoError(t, err)
	jose.SetTransport(keys, h)
	s := senders()["google-pubsub"]
	s.scheme = must(jose.PubSub(audience, email, keys))
	return s
}

const certs = "GET https://www.googleapis.com/oauth2/v3/certs"

func TestKeysAreFetchedAndKept(t *testing.T) {
	clock := now
	var h host
	h.says(setOf(jwkOf(kid, &rsaKey.PublicKey), jwkOf("ec", &ecKey.PublicKey)))
	s := fetched(t, &h, &clock)
	v := s.verifier(t)
	for range 3 {
		_, err := v.Verify(s.message())
		require.NoError(t, err)
	}
	require.Equal(t, []string{certs}, h.asked)
	clock = clock.Add(time.Hour)
	_, err := v.Verify(s.message())
	require.NoError(t, err)
	require.Len(t, h.asked, 2)
	h.status = 500
	clock = clock.Add(24 * time.Hour)
	_, err = v.Verify(s.message())
	require.NoError(t, err, "what is stale is used while the host is away")
	clock = clock.Add(time.Hour)
	_, err = v.Verify(s.message())
	require.ErrorIs(t, err, jose.ErrKeys, "and not for ever")
}

// A new key is found at once, and strangers cannot have more fetched than one list in 30 s.
func TestUnknownKeysAreLookedForWithinBounds(t *testing.T) {
	clock := now
	var h host
	h.says(setOf(jwkOf(kid, &rsaKey.PublicKey)))
	s := fetched(t, &h, &clock)
	v := s.verifier(t)
	_, err := v.Verify(s.message())
	require.NoError(t, err)
	clock = clock.Add(time.Minute)
	for i := range 100 {
		_, err := v.Verify(s.carrying(token("RS256", rsaKey, fields{"kid": fmt.Sprint("stranger-", i)}, s.claims)))
		require.ErrorIs(t, err, signing.ErrNoValidKey)
	}
	require.Len(t, h.asked, 2)
	newer := must(rsa.GenerateKey(rand.Reader, 2048))
	h.says(setOf(jwkOf(kid, &rsaKey.PublicKey), jwkOf("newer", &newer.PublicKey)))
	clock = clock.Add(30 * time.Second)
	_, err = v.Verify(s.carrying(token("RS256", newer, fields{"kid": "newer"}, s.claims)))
	require.NoError(t, err)
	require.Len(t, h.asked, 3)
	h.says(setOf(jwkOf("newer", &newer.PublicKey)))
	clock = clock.Add(time.Hour)
	_, err = v.Verify(s.message())
	require.ErrorIs(t, err, signing.ErrNoValidKey, "the older key was taken back")
}

// Nothing is fetched for a token in which anything else is wrong.
func TestNothingIsFetchedForOthers(t *testing.T) {
	clock := now
	var h host
	h.says("")
	s := fetched(t, &h, &clock)
	v := s.verifier(t)
	for _, c := range []struct {
		alg            string
		header, claims fields
	}{
		{"RS256", s.header, s.claims.with("aud", "other")},
		{"RS256", s.header, s.claims.with("iss", "other")},
		{"RS256", s.header, s.claims.with("email", "other")},
		{"RS256", s.header, s.claims.with("email_verified", false)},
		{"RS256", s.header, s.claims.with("exp", now.Unix()-3600)},
		{"RS256", s.header.with("kid", strings.Repeat("k", 200)), s.claims},
		{"RS512", s.header, s.claims},
	} {
		refused(t, v, s.carrying(token(c.alg, rsaKey, c.header, c.claims)))
	}
	require.Empty(t, h.asked)
}

// While keys cannot be had, a receiver says neither yes nor no, and the sender sends again.
func TestReceiverAnswers503WhileKeysCannotBeHad(t *testing.T) {
	for what, answer := range map[string]string{
		"away": "", "no JSON": "x", "no set": "{}", "no keys": `{"keys":[]}`, "other keys": setOf(fields{"kty": "oct", "kid": kid, "k": "AAAA"}),
		"twice": setOf(jwkOf(kid, &rsaKey.PublicKey), jwkOf(kid, &rsaKey.PublicKey)), "large": setOf(jwkOf(kid, &rsaKey.PublicKey)) + strings.Repeat(" ", 70_000),
	} {
		clock := now
		var h host
		if h.says(answer); what == "away" {
			h.status = 0
		}
		s := fetched(t, &h, &clock)
		store := memory.New()
		rcv, err := receiver.New(s.verifier(t), store.InTx, store, "pubsub", &receiver.Config{Envelope: &receiver.Envelope{}})
		require.NoError(t, err)
		handler := rcv.Handler(receiver.Fact(func(context.Context, *memory.Tx, receiver.Event) error { return nil }))
		post := func() int {
			m := s.message()
			req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(s.body))
			req.Header = m.Header
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			return w.Code
		}
		require.Equal(t, 503, post(), what)
		require.Equal(t, 503, post(), what)
		require.Len(t, h.asked, 1, "a failure is remembered")
		h.says(setOf(jwkOf(kid, &rsaKey.PublicKey)))
		clock = clock.Add(10 * time.Second)
		require.Equal(t, 200, post(), what)
	}
}

func TestPlaidKeys(t *testing.T) {
	clock := now
	h := host{status: 200}
	var posted []string
	key := jwkOf("ec", &ecKey.PublicKey)
	h.answer = func(body string) string {
		posted = append(posted, body)
		return string(must(json.Marshal(fields{"key": key, "request_id": "r"})))
	}
	keys, err := jose.PlaidKeys(true, "client", "hush", &jose.KeysConfig{Now: func() time.Time { return clock }})
	require.NoError(t, err)
	jose.SetTransport(keys, &h)
	s := senders()["plaid"]
	s.scheme = must(jose.Plaid(keys))
	v := s.verifier(t)
	for range 3 {
		_, err := v.Verify(s.message())
		require.NoError(t, err)
	}
	require.Equal(t, []string{"POST https://production.plaid.com/webhook_verification_key/get"}, h.asked)
	require.JSONEq(t, `{"client_id":"client","secret":"hush","key_id":"ec"}`, posted[0])
	m := s.carrying(token("ES256", ecKey, fields{"kid": "other"}, s.claims))
	_, err = v.Verify(m)
	require.ErrorIs(t, err, jose.ErrKeys, "an answer with another key says nothing")
	require.NotContains(t, err.Error(), "hush")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		shown := fmt.Sprintf(verb, keys)
		require.NotContains(t, shown, "hush", verb)
		require.NotContains(t, shown, hex.EncodeToString([]byte("hush")), verb)
		require.Contains(t, shown, "https://production.plaid.com/", verb)
	}
	for i := range 100 {
		_, err = v.Verify(s.carrying(token("ES256", ecKey, fields{"kid": fmt.Sprint(i)}, s.claims)))
		require.ErrorIs(t, err, jose.ErrKeys)
	}
	require.Len(t, h.asked, 8)
	_, err = v.Verify(s.message())
	require.NoError(t, err)
	key = key.with("expired_at", now.Unix()+60)
	clock = clock.Add(25 * time.Hour)
	_, err = v.Verify(s.message())
	require.ErrorIs(t, err, signing.ErrNoValidKey, "it is no key any more")
	_, err = jose.PlaidKeys(false, "client", "", nil)
	require.Error(t, err)
}

func TestParseJWKS(t *testing.T) {
	good := jwkOf(kid, &rsaKey.PublicKey)
	ec := jwkOf("ec", &ecKey.PublicKey)
	other := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	keys, err := jose.ParseJWKS([]byte(setOf(good, ec)))
	require.NoError(t, err)
	require.True(t, rsaKey.PublicKey.Equal(keys[kid]))
	require.True(t, ecKey.PublicKey.Equal(keys["ec"]))
	small := must(rsa.GenerateKey(rand.Reader, 1024))
	for what, k := range map[string]fields{
		"for encryption": good.with("use", "enc"), "another algorithm": good.with("alg", "RS512"), "small": jwkOf(kid, &small.PublicKey), "no number": good.with("n", "!"), "even exponent": good.with("e", "Ag"), "exponent 0": good.with("e", ""), "long exponent": good.with("e", "AAAAAAAB"),
		"another curve": jwkOf("ec", &other.PublicKey), "P-384 said to be P-256": jwkOf("ec", &other.PublicKey).with("crv", "P-256"), "off the curve": ec.with("y", ec["x"]), "short": ec.with("x", "AQ"), "no kid": good.with("kid", nil), "a secret": {"kty": "oct", "kid": kid, "k": "AQ"},
	} {
		_, err := jose.ParseJWKS([]byte(setOf(k)))
		require.Error(t, err, what)
		keys, err := jose.ParseJWKS([]byte(setOf(k, jwkOf("fine", &ecKey.PublicKey))))
		require.NoError(t, err, what)
		require.Len(t, keys, 1, what)
	}
	_, err = jose.ParseJWKS([]byte(setOf(slices.Repeat([]fields{good}, 65)...)))
	require.Error(t, err)
}

func TestJWKSNeedsOneURL(t *testing.T) {
	for _, u := range []string{"", "http://example.com/jwks", "https://example.com:8443/jwks", "https://user@example.com/jwks", "example.com", "https:///jwks", "https://example.com/#x", "%"} {
		_, err := jose.JWKS(u, nil)
		require.Error(t, err, u)
	}
	_, err := jose.JWKS("https://example.com/.well-known/jwks.json", &jose.KeysConfig{Timeout: -1})
	require.Error(t, err)
}

// looks notes the names that are looked up, at the socket to the resolver.
type looks struct {
	net.Conn
	names func(string)
}

func (l looks) Write(b []byte) (int, error) {
	var name []string
	for i := 14; i < len(b) && b[i] != 0; i += int(b[i]) + 1 { // RFC 1035 sections 4.1.1 and 4.2.2
		name = append(name, string(b[i+1:i+1+int(b[i])]))
	}
	l.names(strings.Join(name, "."))
	return len(b), nil
}

func (looks) Read([]byte) (int, error) { return 0, errors.New("no resolver here") }

// Nothing leaves this process with fixed keys, and otherwise only the pinned host is looked
// up, whatever a token says.
func TestNetworkIsAskedForPinnedHostsAlone(t *testing.T) {
	var mu sync.Mutex
	var names []string
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		left, right := net.Pipe()
		_ = right.Close()
		return looks{left, func(name string) {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}}, nil
	}}
	for _, s := range senders() {
		header := s.header.with("jku", "https://evil.example/keys").with("x5u", "https://evil.example/cert")
		_, err := s.verifier(t).Verify(s.carrying(token(s.alg, s.key, header, s.claims.with("url", "https://evil.example/"))))
		require.NoError(t, err)
		refused(t, s.verifier(t), s.carrying(token(s.alg, s.key, header.with("kid", "https://evil.example/"), s.claims.with("aud", "https://evil.example/").with("iss", "https://evil.example/").with("iat", nil))))
	}
	require.Empty(t, names)
	keys := must(jose.GoogleKeys(nil))
	s := senders()["google-pubsub"]
	s.scheme = must(jose.PubSub(audience, email, keys))
	_, err := s.verifier(t).Verify(s.carrying(token("RS256", rsaKey, s.header.with("jku", "https://evil.example/keys").with("kid", "https://evil.example/"), s.claims)))
	require.ErrorIs(t, err, jose.ErrKeys)
	for _, name := range names {
		require.True(t, strings.HasPrefix(name, "www.googleapis.com"), "%v", names)
	}
	require.NotEmpty(t, names)
}
