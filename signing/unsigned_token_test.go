package signing_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func token(tb testing.TB, d signing.Description) *signing.UnsignedToken {
	tb.Helper()
	s, err := signing.NewUnsignedToken(d)
	require.NoError(tb, err)
	return s
}

var (
	headerToken = signing.Description{Name: "token", SignatureHeader: "X-Token", SignaturePrefix: "Bearer ", IDHeader: "X-Id", TypeField: "type"}
	bodyToken   = signing.Description{Name: "token", SignatureField: "value[].clientState"}
	weakConfig  = signing.VerifierConfig{Deduplicated: true, UnsignedBody: true}
)

func withSchemes(schemes ...signing.Scheme) *signing.VerifierConfig {
	cfg := weakConfig
	cfg.Schemes = schemes
	return &cfg
}

func TestUnsignedTokensInHeaders(t *testing.T) {
	s := token(t, headerToken)
	v, err := signing.NewVerifier(ring(t, signing.Key{ID: "old", Secret: textSecret(t, secretA)}, signing.Key{ID: "new", Secret: textSecret(t, secretB)}), withSchemes(s))
	require.NoError(t, err)
	for what, c := range map[string]struct {
		values []string
		want   error
	}{
		"the newest":        {[]string{"Bearer " + secretB}, nil},
		"the other":         {[]string{"Bearer " + secretA}, nil},
		"another":           {[]string{"Bearer " + strings.ToUpper(secretA)}, signing.ErrSignatureMismatch},
		"cut off":           {[]string{"Bearer " + secretA[1:]}, signing.ErrSignatureMismatch},
		"longer":            {[]string{"Bearer " + secretA + " "}, signing.ErrSignatureMismatch},
		"without a prefix":  {[]string{secretA}, signing.ErrMalformedHeader},
		"prefix alone":      {[]string{"Bearer "}, signing.ErrMalformedHeader},
		"empty":             {[]string{""}, signing.ErrMalformedHeader},
		"very long":         {[]string{"Bearer " + strings.Repeat("x", 1025)}, signing.ErrMalformedHeader},
		"twice":             {[]string{"Bearer " + secretA, "Bearer " + secretA}, signing.ErrRepeatedHeader},
		"none":              {nil, signing.ErrNotSigned},
		"the fingerprint's": {[]string{"Bearer " + textSecret(t, secretA).Fingerprint()}, signing.ErrSignatureMismatch},
	} {
		m := signing.Message{Header: http.Header{"X-Id": {"7"}}, Body: []byte(`{"type":"x"}`)}
		if c.values != nil {
			m.Header["X-Token"] = c.values
		}
		verified, facts, err := v.VerifyFacts(m)
		require.ErrorIs(t, err, c.want, what)
		if c.want == nil {
			require.Equal(t, "token", verified.Scheme, what)
			require.True(t, verified.Timestamp.IsZero(), what)
			require.Equal(t, signing.Facts{UnsignedID: "7", UnsignedType: "x"}.Of(m), facts, what)
			require.True(t, strings.HasPrefix(facts.DedupKey(), "sha256-"), what)
			continue
		}
		for _, value := range c.values {
			require.False(t, len(value) > 9 && strings.Contains(err.Error(), value), what)
		}
	}
}

// Every element of the list has the token: a request cannot mix its own events in.
func TestUnsignedTokensInBodies(t *testing.T) {
	v, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, secretA)}, signing.Key{Secret: textSecret(t, secretB)}), withSchemes(token(t, bodyToken)))
	require.NoError(t, err)
	for body, good := range map[string]bool{
		`{"value":[{"clientState":"A"}]}`:                                      true,
		`{"value": [ {"clientState":"A"} , {"x":[1,{}],"clientState":"A"} ] }`: true,
		`{"value":[{"clientState":"B"},{"clientState":"B"}]}`:                  true,
		`{"value":[{"\u0078":"y","client\u0053tate":"A"}]}`:                    true,
		"{\r\n\t\"value\":\t[\r{\"clientState\"\n:\t\"A\"\r}\t]}":              true,
		`{"value":[{"clientState":"A"},{"clientState":"B"}]}`:                  false,
		`{"value":[{"clientState":"A"},{"clientState":"x"}]}`:                  false,
		`{"value":[{"clientState":"x"},{"clientState":"A"}]}`:                  false,
		`{"value":[{"clientState":"A"},{}]}`:                                   false,
		`{"value":[{"clientState":"A"},7]}`:                                    false,
		`{"value":[{"clientState":"x","clientState":"A"}]}`:                    false,
		`{"value":[],"value":[{"clientState":"A"}]}`:                           false,
		`{"value":[]}`:                    false,
		`{"value":{"clientState":"A"}}`:   false,
		`{"value":"A"}`:                   false,
		`{"clientState":"A"}`:             false,
		`[{"clientState":"A"}]`:           false,
		`{"value":[{"clientState":"A"}`:   false,
		``:                                false,
		`{"value":[{"clientState":[1]}]}`: false,
	} {
		text := strings.NewReplacer(`"A"`, `"`+secretA+`"`, `"B"`, `"`+secretB+`"`).Replace(body)
		_, err := v.Verify(signing.Message{Header: http.Header{}, Body: []byte(text)})
		if good {
			require.NoError(t, err, body)
		} else {
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, body)
		}
	}
	one, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, secretA)}), withSchemes(token(t, signing.Description{Name: "x", SignatureField: "a.token"})))
	require.NoError(t, err)
	_, err = one.Verify(signing.Message{Body: []byte(`{"a":{"token":"` + secretA + `"}}`)})
	require.NoError(t, err)
	_, err = one.Verify(signing.Message{Body: []byte(`{"a":{"token":"x"}}`)})
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
}

// Nobody gets a weak scheme without having said so.
func TestWeakSchemesAreAskedFor(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	weak := token(t, headerToken)
	for _, c := range []struct {
		cfg  signing.VerifierConfig
		want string
	}{
		{signing.VerifierConfig{Schemes: []signing.Scheme{weak}, UnsignedBody: true}, "VerifierConfig.Deduplicated"},
		{signing.VerifierConfig{Schemes: []signing.Scheme{weak}, Deduplicated: true}, "VerifierConfig.UnsignedBody"},
		{*withSchemes(weak, signing.GitHub()), "it must be the only scheme"},
		{*withSchemes(signing.GitHub(), weak), "it must be the only scheme"},
		{*withSchemes(new(signing.UnsignedToken)), "accepts nothing"},
		{signing.VerifierConfig{Schemes: []signing.Scheme{plain(t)}}, "VerifierConfig.Deduplicated"},
	} {
		_, err := signing.NewVerifier(keys, &c.cfg)
		require.ErrorContains(t, err, c.want)
	}
	public := ring(t, signing.Key{Secret: privateKey(t, secretA)})
	_, err := signing.NewVerifier(public, withSchemes(weak))
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	_, err = weak.Verify(signing.Message{Header: http.Header{"X-Token": {"Bearer " + secretA}}}, public, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	_, err = new(signing.UnsignedToken).Verify(signing.Message{}, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
	require.ErrorIs(t, new(signing.UnsignedToken).Precheck(nil, now, tolerance), signing.ErrNoValidKey)
	for _, s := range []signing.Scheme{weak, plain(t)} {
		h := http.Header{}
		require.ErrorContains(t, s.Sign(h, eventID, now, body, keys), "sign with StandardWebhooks")
		require.Empty(t, h)
		require.NotContains(t, s.Sign(h, eventID, now, body, keys).Error(), secretA)
	}
	// By default, and in a diagnosis, they do not exist.
	v, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	for _, h := range []http.Header{{"X-Token": {"Bearer " + secretA}}, {"X-Gitlab-Token": {secretA}}, {"Authorization": {secretA}}} {
		_, err = v.Verify(signing.Message{Header: h})
		require.ErrorIs(t, err, signing.ErrNotSigned)
		require.NotContains(t, fmt.Sprint(v.Diagnose(signing.Message{Header: h})), "is right")
	}
}

func TestDescriptionsOfWeakSchemesAreChecked(t *testing.T) {
	for want, d := range map[string]signing.Description{
		"it needs a Name":                      {SignatureHeader: "X"},
		"needs either a SignatureHeader":       {Name: "x"},
		"or a SignatureField":                  {Name: "x", SignatureHeader: "X", SignatureField: "x"},
		"set only Name":                        {Name: "x", SignatureHeader: "X", Signed: "{body}"},
		"it signs nothing":                     {Name: "x", SignatureHeader: "X", MoreSignatureHeaders: []string{"Y"}},
		"TypeField and TypeHeader":             {Name: "x", SignatureHeader: "X", TimeField: "time"},
		"cannot be the name of a header":       {Name: "x", SignatureHeader: "X Y"},
		"must begin with a visible":            {Name: "x", SignatureHeader: "X", SignaturePrefix: " a"},
		"of which one may be a list":           {Name: "x", SignatureField: "[].a"},
		"must be names with full stops betwee": {Name: "x", SignatureField: "a[].b[].c"},
	} {
		_, err := signing.NewUnsignedToken(d)
		require.ErrorContains(t, err, want)
	}
	for want, d := range map[string]signing.Description{
		"needs the Algorithm PlainSHA256": {Name: "x", SignatureHeader: "X", Signed: "{body}"},
		"must end with {body}":            {Name: "x", SignatureHeader: "X", Signed: "{body}{method}", Algorithm: signing.PlainSHA256},
		"covers no time":                  {Name: "x", SignatureHeader: "X", Signed: "{timestamp}{body}", TimestampHeader: "T", Algorithm: signing.PlainSHA256},
		"it needs a Name":                 {SignatureHeader: "X", Signed: "{body}", Algorithm: signing.PlainSHA256},
	} {
		_, err := signing.NewPlainHash(d)
		require.ErrorContains(t, err, want)
	}
	_, err := signing.NewDescribed(signing.Description{Name: "x", SignatureHeader: "X", Signed: "{body}", Algorithm: signing.PlainSHA256})
	require.ErrorContains(t, err, "make the scheme with NewPlainHash")
}

func plain(tb testing.TB) *signing.Described {
	tb.Helper()
	s, err := signing.NewPlainHash(signing.Description{Name: "plain", SignatureHeader: "X-Plain", Signed: "{body}", Algorithm: signing.PlainSHA256})
	require.NoError(tb, err)
	return s
}

// The hash of a text is also the beginning of the hash of a longer one, which anybody can
// compute. The longer body is refused.
func TestPlainHashesCannotBeExtended(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	s := plain(t)
	verify := func(body []byte, sum []byte) error {
		_, err := s.Verify(signing.Message{Header: http.Header{"X-Plain": {hex.EncodeToString(sum)}}, Body: body}, keys, now, tolerance)
		return err
	}
	for _, known := range []string{"", `{"a":1}`, `{"name":"Zoë 🚀"}`, strings.Repeat("x", 200)} {
		sum := sha256.Sum256([]byte(secretA + known))
		require.NoError(t, verify([]byte(known), sum[:]))
		longer, extended := extend(t, sum, len(secretA)+len(known), []byte(`,"a":2}`))
		body := append([]byte(known), longer...)
		want := sha256.Sum256(append([]byte(secretA), body...))
		require.Equal(t, want[:], extended, "the attack itself works")
		require.ErrorIs(t, verify(body, extended), signing.ErrSignatureMismatch)
	}
}

// extend computes what an attacker appends, and the hash of it all, from a hash and the length
// of what was hashed.
func extend(tb testing.TB, sum [32]byte, length int, more []byte) (appended, extended []byte) {
	tb.Helper()
	padding := append([]byte{0x80}, make([]byte, (119-length%64)%64)...)
	padding = binary.BigEndian.AppendUint64(padding, uint64(length)*8)
	h := sha256.New()
	state := append([]byte("sha\x03"), sum[:]...) // crypto/sha256's own form of a state
	state = append(state, make([]byte, 64)...)
	state = binary.BigEndian.AppendUint64(state, uint64(length+len(padding)))
	require.NoError(tb, h.(interface{ UnmarshalBinary([]byte) error }).UnmarshalBinary(state))
	h.Write(more)
	return append(padding, more...), h.Sum(nil)
}
