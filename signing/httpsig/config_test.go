package httpsig_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

func TestRefusedConfigurations(t *testing.T) {
	digest := []string{"content-digest"}
	with := func(more ...string) []string { return append(more, digest...) }
	for _, c := range []struct {
		algorithm signing.Algorithm
		covered   []string
		cfg       httpsig.Config
		says      string
	}{
		{signing.HMACSHA1, digest, httpsig.Config{}, "the algorithm must be"},
		{signing.HMACSHA512, digest, httpsig.Config{}, "the algorithm must be"},
		{200, digest, httpsig.Config{}, "the algorithm must be"},
		{signing.Ed25519, digest, httpsig.Config{KeyAlgorithms: map[string]signing.Algorithm{"a": signing.PlainSHA256}}, "the algorithm must be"},
		{signing.RSASHA256, digest, httpsig.Config{KeyAlgorithms: map[string]signing.Algorithm{"a": signing.RSAPSSSHA512}}, "needs NeedKeyID"},
		{signing.HMACSHA256, nil, httpsig.Config{}, `"content-digest" must be covered`},
		{signing.HMACSHA256, []string{`content-digest;key="sha-256"`}, httpsig.Config{}, `"content-digest" must be covered`},
		{signing.HMACSHA256, with("content-digest"), httpsig.Config{}, "there twice"},
		{signing.HMACSHA256, with("@path"), httpsig.Config{}, "needs Config.URL"},
		{signing.HMACSHA256, with("date;sf"), httpsig.Config{}, "parameter sf"},
		{signing.HMACSHA256, with("@method;req"), httpsig.Config{}, "parameter req"},
		{signing.HMACSHA256, with("x;tr"), httpsig.Config{}, "parameter tr"},
		{signing.HMACSHA256, with("x;bs=?1"), httpsig.Config{}, "no string"},
		{signing.HMACSHA256, with(`x;bs;key="a"`), httpsig.Config{}, "one of bs, key and name"},
		{signing.HMACSHA256, with(`x;name="a"`), httpsig.Config{}, "belongs to @query-param"},
		{signing.HMACSHA256, with("x;other"), httpsig.Config{}, "not known here"},
		{signing.HMACSHA256, with("x;"), httpsig.Config{}, "no name"},
		{signing.HMACSHA256, with("@status"), httpsig.Config{}, "@status is for answers"},
		{signing.HMACSHA256, with("@query-params"), httpsig.Config{}, "of a draft"},
		{signing.HMACSHA256, with("@query-param"), httpsig.Config{URL: url}, "needs the parameter name"},
		{signing.HMACSHA256, with(`@method;name="x"`), httpsig.Config{}, "takes no parameter"},
		{signing.HMACSHA256, with("@signature-params"), httpsig.Config{}, "not one of those of requests"},
		{signing.HMACSHA256, with("Content-Type"), httpsig.Config{}, "lower case"},
		{signing.HMACSHA256, with(""), httpsig.Config{}, "no name of a header"},
		{signing.HMACSHA256, with("signature"), httpsig.Config{}, "cannot be covered"},
		{signing.HMACSHA256, with(`"date" x`), httpsig.Config{}, "something behind it"},
		{signing.HMACSHA256, with(strings.Split(strings.Repeat("x,", 33), ",")...), httpsig.Config{}, "at most 32"},
		{signing.HMACSHA256, digest, httpsig.Config{URL: "example.com"}, "must be the URL"},
		{signing.HMACSHA256, digest, httpsig.Config{URL: "https://a@example.com"}, "must be the URL"},
		{signing.HMACSHA256, digest, httpsig.Config{URL: "https://example.com/#x"}, "must be the URL"},
		{signing.HMACSHA256, digest, httpsig.Config{URL: "https://example.com/\n"}, "must be the URL"},
		{signing.HMACSHA256, digest, httpsig.Config{Label: "Sig"}, "Config.Label"},
		{signing.HMACSHA256, digest, httpsig.Config{Tag: "ä"}, "Config.Tag"},
		{signing.HMACSHA256, digest, httpsig.Config{IDHeader: "X-Id"}, "must be covered"},
		{signing.HMACSHA256, with("x-id;bs"), httpsig.Config{TypeHeader: "X-Id"}, "must be covered"},
		{signing.HMACSHA256, digest, httpsig.Config{MaxAge: time.Millisecond}, "at least 1s"},
		{signing.HMACSHA256, digest, httpsig.Config{Lifetime: time.Minute}, "needs NeedExpires"},
	} {
		s, err := httpsig.New(c.algorithm, c.covered, &c.cfg)
		require.ErrorContains(t, err, c.says, c.covered)
		require.Nil(t, s)
	}
	_, err := httpsig.New(signing.HMACSHA1, nil, &httpsig.Config{Label: "!", URL: "x"})
	for _, says := range []string{"algorithm", "content-digest", "Label", "URL"} {
		require.ErrorContains(t, err, says, "all problems at once")
	}
}

// A verifier says at once what no request could pass.
func TestVerifiersThatCannotVerify(t *testing.T) {
	pinned := scheme(t, signing.RSASHA256, []string{"content-digest"}, httpsig.Config{NeedKeyID: true, KeyAlgorithms: map[string]signing.Algorithm{"ed": signing.Ed25519}})
	_, err := signing.NewVerifier(ring(t, hmacKey(t, secretA)), &signing.VerifierConfig{Schemes: []signing.Scheme{pinned}})
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	_, err = signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{pinned}})
	require.ErrorContains(t, err, "needs a keyring")
	_, err = signing.NewVerifier(ring(t, pairs()[0].key), &signing.VerifierConfig{Schemes: []signing.Scheme{pinned}})
	require.NoError(t, err, "the key with another algorithm suits")
	untimed := scheme(t, signing.HMACSHA256, []string{"content-digest"}, httpsig.Config{NoCreated: true})
	_, err = signing.NewVerifier(ring(t, hmacKey(t, secretA)), &signing.VerifierConfig{Schemes: []signing.Scheme{untimed}})
	require.ErrorContains(t, err, "Deduplicated")
	var zero httpsig.Scheme
	_, err = zero.Verify(signing.Message{}, nil, now, tolerance)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
	require.ErrorIs(t, zero.Precheck(nil, now, tolerance), signing.ErrNoValidKey)
}

// One keyring has keys of several algorithms, each pinned to its own. A request that names one
// key and is signed as another's algorithm would be is refused.
func TestEachKeyHasItsAlgorithm(t *testing.T) {
	all := pairs()
	ed, ec, pss := all[0], all[1], all[2]
	cfg := func(p keyPair) httpsig.Config {
		return httpsig.Config{NeedKeyID: true, Signer: p.signer, SignerID: p.key.ID}
	}
	covered := []string{"content-digest"}
	keys := ring(t, hmacKey(t, secretA), ed.key, ec.key, pss.key)
	verifies := scheme(t, signing.HMACSHA256, covered, httpsig.Config{NeedKeyID: true, KeyAlgorithms: map[string]signing.Algorithm{"ed": signing.Ed25519, "ec": signing.ECDSAP256, "rs": signing.RSAPSSSHA512}})
	for _, p := range all {
		m := signed(t, scheme(t, p.algorithm, covered, cfg(p)), nil, "{}")
		_, err := verifies.Verify(m, keys, now, tolerance)
		if p.algorithm == signing.RSASHA256 {
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "the key is pinned to PSS")
			continue
		}
		require.NoError(t, err)
		m.Header.Set("Signature-Input", strings.Replace(m.Header.Get("Signature-Input"), "("+`"content-digest"`+")", `("content-digest");alg="hmac-sha256"`, 1))
		_, err = verifies.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, signing.ErrMalformedHeader)
		m = signed(t, scheme(t, p.algorithm, covered, cfg(p)), nil, "{}")
		m.Header.Set("Signature-Input", strings.Replace(m.Header.Get("Signature-Input"), `"`+p.key.ID+`"`, `"key-aaa"`, 1))
		_, err = verifies.Verify(m, keys, now, tolerance)
		require.Error(t, err, "an HMAC's key, named by a request that is signed by a private key")
	}
}

// Two schemes in one verifier, told apart by their labels: a sender that moves to another
// algorithm signs twice meanwhile.
func TestLabelsAndTagsTellSchemesApart(t *testing.T) {
	ed := pairs()[0]
	covered := []string{"content-digest"}
	first := scheme(t, signing.HMACSHA256, covered, httpsig.Config{Name: "old", Label: "a"})
	second := scheme(t, signing.Ed25519, covered, httpsig.Config{Name: "new", Tag: "b", Label: "b", Signer: ed.signer})
	keys := ring(t, hmacKey(t, secretA), ed.key)
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{second, first}, Now: func() time.Time { return now }})
	require.NoError(t, err)
	old, young := signed(t, first, keys, "{}"), signed(t, second, keys, "{}")
	both := old
	both.Header = old.Header.Clone()
	for _, name := range []string{"Signature", "Signature-Input"} {
		both.Header.Set(name, old.Header.Get(name)+" ,\t"+young.Header.Get(name))
	}
	for _, c := range []struct {
		m    signing.Message
		want string
	}{{old, "old"}, {young, "new"}, {both, "new"}} {
		require.NoError(t, v.Precheck(c.m.Header))
		got, err := v.Verify(c.m)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Scheme)
	}
	plain := scheme(t, signing.HMACSHA256, covered, httpsig.Config{})
	_, err = plain.Verify(both, keys, now, tolerance)
	require.ErrorContains(t, err, "several signatures")
	tagged := scheme(t, signing.Ed25519, covered, httpsig.Config{Tag: "b"})
	_, err = tagged.Verify(both, keys, now, tolerance)
	require.NoError(t, err, "the tag tells which")
}

// The edges of the window, in whole seconds.
func TestWindow(t *testing.T) {
	keys := ring(t, hmacKey(t, secretA))
	for _, c := range []struct {
		cfg        httpsig.Config
		back, fore time.Duration
	}{
		{httpsig.Config{}, tolerance, tolerance},
		{httpsig.Config{MaxAge: time.Hour}, time.Hour, tolerance},
		{httpsig.Config{MaxAge: time.Second}, time.Second, tolerance},
		{httpsig.Config{MaxAge: time.Hour, NeedExpires: true, Lifetime: time.Minute}, time.Minute, tolerance},
	} {
		s := scheme(t, signing.HMACSHA256, []string{"content-digest"}, c.cfg)
		m := signed(t, s, keys, "{}")
		for at, ok := range map[time.Time]bool{
			now: true, now.Add(c.back): true, now.Add(c.back + time.Second - 1): true, now.Add(c.back + time.Second): false,
			now.Add(-c.fore): true, now.Add(-c.fore - 1): false, {}: false, time.Unix(1<<40, 0): false,
		} {
			_, err := s.Verify(m, keys, at, tolerance)
			if ok {
				require.NoError(t, err, "%v %v", c.cfg, at.Sub(now))
				continue
			}
			require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow, "%v %v", c.cfg, at.Sub(now))
			require.ErrorIs(t, s.Precheck(m.Header, at, tolerance), signing.ErrTimestampOutsideWindow)
		}
	}
	untimed := scheme(t, signing.HMACSHA256, []string{"content-digest"}, httpsig.Config{NoCreated: true})
	require.NoError(t, untimed.Precheck(http.Header{"Signature": {"a=:" + strings.Repeat("A", 43) + "=:"}, "Signature-Input": {`a=("content-digest")`}, "Content-Digest": {rfcSHA256}}, now, tolerance))
}

// Sign leaves the headers as they were if it fails.
func TestSigningThatFails(t *testing.T) {
	ed := pairs()[0]
	mac := ring(t, hmacKey(t, secretA))
	for _, c := range []struct {
		what string
		s    *httpsig.Scheme
		keys *signing.Keyring
		at   time.Time
		id   string
	}{
		{"no key", scheme(t, signing.HMACSHA256, []string{"content-digest"}, httpsig.Config{}), nil, now, ""},
		{"a public key", scheme(t, signing.Ed25519, []string{"content-digest"}, httpsig.Config{}), ring(t, ed.key), now, ""},
		{"another signer's algorithm", scheme(t, signing.RSASHA256, []string{"content-digest"}, httpsig.Config{Signer: ed.signer}), nil, now, ""},
		{"no name of the signer", scheme(t, signing.Ed25519, []string{"content-digest"}, httpsig.Config{Signer: ed.signer, NeedKeyID: true}), nil, now, ""},
		{"a header that is not there", scheme(t, signing.HMACSHA256, []string{"content-digest", "date"}, httpsig.Config{}), mac, now, ""},
		{"no path", scheme(t, signing.HMACSHA256, []string{"content-digest", "@path"}, httpsig.Config{URL: "https://example.com"}), mac, now, ""},
		{"before 1970", scheme(t, signing.HMACSHA256, []string{"content-digest"}, httpsig.Config{}), mac, time.Unix(0, 0), ""},
		{"no id", scheme(t, signing.HMACSHA256, []string{"content-digest", "x-id"}, httpsig.Config{IDHeader: "X-Id"}), mac, now, ""},
		{"a line end in the id", scheme(t, signing.HMACSHA256, []string{"content-digest", "x-id"}, httpsig.Config{IDHeader: "X-Id"}), mac, now, "a\nb"},
	} {
		h := http.Header{"Content-Digest": {"before"}, "signature": {"before"}}
		require.Error(t, c.s.Sign(h, c.id, c.at, nil, c.keys), c.what)
		require.Equal(t, http.Header{"Content-Digest": {"before"}, "signature": {"before"}}, h, c.what)
	}
}
