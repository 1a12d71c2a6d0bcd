package jose_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

func TestNewNamesAllProblems(t *testing.T) {
	good := jose.Token{Name: "x", Header: "X-Token", Algorithm: jose.HS256, BodyHash: "hash"}
	_, err := jose.New(good)
	require.NoError(t, err)
	for problem, change := range map[string]func(*jose.Token){
		"needs a Name":            func(t *jose.Token) { t.Name = "" },
		"the Header where it is":  func(t *jose.Token) { t.Header = "" },
		"must be RS256":           func(t *jose.Token) { t.Algorithm = "none" },
		"needs Keys":              func(t *jose.Token) { t.Algorithm = jose.RS256 },
		"leave Keys out":          func(t *jose.Token) { t.Keys = public() },
		"at least 1s":             func(t *jose.Token) { t.MaxAge = time.Millisecond },
		"both, or none":           func(t *jose.Token) { t.URL = "https://example.com/" },
		"must be whole":           func(t *jose.Token) { t.URL, t.URLHash = "/hooks", "url" },
		"about a BodyHash":        func(t *jose.Token) { t.BodyHash, t.NoBodyNoHash = "", true },
		"ByToken needs":           func(t *jose.Token) { t.BodyHash, t.ByToken = "", true },
		"BasePath":                func(t *jose.Token) { t.BasePath = "jira/" },
		"signing: description of": func(t *jose.Token) { t.Header = "X Token" },
	} {
		c := good
		change(&c)
		_, err := jose.New(c)
		require.ErrorContains(t, err, problem)
	}
	for _, err := range []error{second(jose.PubSub("", email, public())), second(jose.PubSub(audience, "", public())), second(jose.PubSub(audience, email, nil)), second(jose.AtlassianConnect("", "")), second(jose.Monday("")), second(jose.MessageBird(""))} {
		require.Error(t, err)
	}
}

func second[T any](_ T, err error) error { return err }

// A scheme does not change with the Token that it was made of.
func TestTokensAreCopied(t *testing.T) {
	s := senders()["plaid"]
	c := jose.Token{Name: "plaid", Header: s.name, Algorithm: jose.ES256, Keys: public(), MaxAge: time.Minute, Issuers: []string{"a"}, Claims: map[string]string{"b": "c"}}
	s.scheme = must(jose.New(c))
	c.Issuers[0], c.Claims["b"] = "other", "other"
	m := s.carrying(token("ES256", ecKey, s.header, s.claims.with("iss", "a").with("b", "c")))
	_, err := s.verifier(t).Verify(m)
	require.NoError(t, err)
	require.ErrorIs(t, s.scheme.Precheck(nil, now, time.Minute), signing.ErrNotSigned)
}
