package signing_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/signing"
)

func described(tb testing.TB, d signing.Description) *signing.Described {
	tb.Helper()
	if d.Name == "" {
		d.Name = "reach"
	}
	if d.SignatureHeader == "" && d.SignatureField == "" {
		d.SignatureHeader = "X-Sig"
	}
	s, err := signing.NewDescribed(d)
	require.NoError(tb, err)
	return s
}

func macOf(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// The text that a template stands for, made without the package. Every byte of it counts.
func TestSignedTexts(t *testing.T) {
	sum := sha256.Sum256(body)
	unix := seconds(now)
	const url = "https://example.com/hooks/7?a=b"
	for signed, text := range map[string]string{
		"{body}{timestamp}":                                     string(body) + unix,
		"{body}.{timestamp}":                                    string(body) + "." + unix,
		"{body}.{header:X-Nonce}.{timestamp}":                   string(body) + ".n-1." + unix,
		"{body}.{header:X-Empty}.{header:X-Spaced}.{timestamp}": string(body) + "..a b." + unix,
		"{timestamp}.{body}.{id}":                               unix + "." + string(body) + "." + eventID,
		"{body}{url}{timestamp}":                                string(body) + url + unix,
		"{method}{url}{body}{timestamp}":                        "POST" + url + string(body) + unix,
		"{method}\n{path}\n{timestamp}\n{body}":                 "POST\n/hooks/7?a=b\n" + unix + "\n" + string(body),
		"{timestamp}.{header:x-nonce}.{header:X-Empty};{body}":  unix + ".n-1.;" + string(body),
		"{timestamp}|{digest:sha256:hex}":                       unix + "|" + hex.EncodeToString(sum[:]),
		"{digest:sha256:base64}{timestamp}":                     base64.StdEncoding.EncodeToString(sum[:]) + unix,
		"{timestamp}.{field:id}.{field:type}|{body}":            unix + "." + eventID + ".subscriber.updated|" + string(body),
		"{body}|{field:type}{timestamp}":                        string(body) + "|subscriber.updated" + unix,
		"{timestamp}.{body} end":                                unix + "." + string(body) + " end",
	} {
		d := signing.Description{Signed: signed, TimestampHeader: "X-Time"}
		if strings.Contains(signed, "{id}") {
			d.IDHeader = "X-Id"
		}
		if strings.Contains(signed, "{url}") || strings.Contains(signed, "{path}") {
			d.URL = url
		}
		s := described(t, d)
		keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
		h := http.Header{"X-Time": {unix}, "X-Nonce": {"n-1"}, "X-Empty": {""}, "X-Spaced": {"a b"}, "X-Id": {eventID}, "X-Sig": {hex.EncodeToString(macOf(secretA, text))}}
		m := signing.Message{Method: http.MethodPost, Header: h, Body: body}
		_, err := s.Verify(m, keys, now, tolerance)
		require.NoError(t, err, "%s: %q", signed, text)
		require.NoError(t, s.Precheck(h, now, tolerance), signed)

		again := http.Header{"X-Nonce": {"n-1"}, "X-Empty": {""}, "X-Spaced": {"a b"}}
		require.NoError(t, s.Sign(again, eventID, now, body, keys), signed)
		require.Equal(t, h["X-Sig"], again["X-Sig"], signed)

		for i := range body {
			changed := append([]byte(nil), body...)
			changed[i] ^= 1
			_, err := s.Verify(signing.Message{Method: http.MethodPost, Header: h, Body: changed}, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "%s: byte %d", signed, i)
		}
		for name, values := range h {
			inText := name == "X-Time" || name == "X-Nonce" && strings.Contains(strings.ToLower(signed), "x-nonce") || name == "X-Id" && d.IDHeader != ""
			if !inText {
				continue
			}
			other := h.Clone()
			other.Set(name, values[0][:len(values[0])-1]+"5")
			_, err := s.Verify(signing.Message{Method: http.MethodPost, Header: other, Body: body}, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "%s: %s", signed, name)
			other.Add(name, "x")
			require.ErrorIs(t, s.Precheck(other, now, tolerance), signing.ErrRepeatedHeader, "%s: %s", signed, name)
			other.Del(name)
			require.ErrorIs(t, s.Precheck(other, now, tolerance), signing.ErrMissingHeader, "%s: %s", signed, name)
		}
		if strings.Contains(signed, "{method}") {
			m.Method = http.MethodPut
			_, err := s.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, signed)
		}
	}
}

// Nothing beside a value can have the byte that ends it.
func TestSignedTextsSplitInOneWay(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	before := described(t, signing.Description{Signed: "{header:X-A}.{header:X-B}|{body}"})
	behind := described(t, signing.Description{Signed: "{body}.{header:X-A}|{header:X-B}"})
	for _, c := range []struct {
		s    *signing.Described
		a, b string
		ok   bool
	}{
		{before, "a", "b", true}, {before, "a|a", "b.b", true}, {before, "", "", true}, {before, "a a", "~", true},
		{before, "a.a", "b", false}, {before, "a", "b|b", false}, {before, "é", "b", false}, {before, "a\n", "b", false}, {before, strings.Repeat("a", 1025), "b", false},
		{behind, "a", "b", true}, {behind, "a|a", "b.b", true}, {behind, "a.a", "b", false}, {behind, "a", "b|b", false},
	} {
		h := http.Header{"X-A": {c.a}, "X-B": {c.b}}
		err := c.s.Sign(h, "", now, body, keys)
		if !c.ok {
			require.ErrorIs(t, err, signing.ErrMalformedHeader, "%q %q", c.a, c.b)
			h.Set("X-Sig", strings.Repeat("0", 64))
			refused(t, c.s, signing.Message{Header: h, Body: body}, keys, now, signing.ErrMalformedHeader, c.a+" "+c.b)
			continue
		}
		require.NoError(t, err)
		_, err = c.s.Verify(signing.Message{Header: h, Body: body}, keys, now, tolerance)
		require.NoError(t, err)
	}
	for signed, problem := range map[string]string{
		"{header:X-A}{body}":              "{header:X-A} needs a text behind it",
		"{header:X-A}{header:X-B}.{body}": "{header:X-A} needs a text behind it",
		"{body}{header:X-A}":              "{header:X-A} behind {body} needs a text before it",
		"{body}{id}":                      "{id} behind {body} needs a text before it",
		"{body}.{headers}":                "{headers} must stand before {body}",
		"{headers}.{header:X-A}.{body}":   "{headers} cannot stand beside",
		"{headers}.{field:a}.{body}":      "{headers} cannot stand beside",
		"{headers}.{lower:a}.{body}":      "{headers} cannot stand beside",
		"{headers}.{form:a}":              "{headers} cannot stand beside",
		"{body}{field:a}":                 "{field:a} behind {body} needs a text before it",
		"{id}{header:X-A}.{body}":         "{id} needs a text between it and {header:X-A}",
		"{header:}.{body}":                "{header:} names nothing",
		"{header:a b}.{body}":             `"a b" cannot be the name of a header`,
		"{field:a..b}.{body}":             "a path of names",
		"{digest:md5:hex}":                "{digest:md5:hex} is not known: it may be {digest:sha256:hex}",
		"{body:x}":                        "{body:x} is not known",
		"{timestamp}.{header:X-A}.":       "it must have {body}",
		"{header:X-Sig}.{body}":           "which is the header of a signature",
		"a{url}{url}":                     "it has {url} twice",
		"{body}{body}":                    "it has {body} twice",
		"{body":                           "{body is not known",
	} {
		_, err := signing.NewDescribed(signing.Description{Name: "x", SignatureHeader: "X-Sig", IDHeader: "X-Id", SignatureLabel: "v1", HeadersLabel: "h", Signed: signed})
		require.ErrorContains(t, err, problem, signed)
	}
}

func TestEncodings(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	raw := macOf(secretA, string(body))
	lower, std, url := hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw)
	for encoding, forms := range map[signing.Encoding][]string{
		signing.Hex:            {lower},
		signing.HexAnyCase:     {lower, strings.ToUpper(lower), strings.ToUpper(lower[:9]) + lower[9:]},
		signing.Base64:         {std},
		signing.Base64Unpadded: {std, strings.TrimRight(std, "=")},
		signing.Base64URL:      {url, strings.TrimRight(url, "=")},
	} {
		s := described(t, signing.Description{Signed: "{body}", Encoding: encoding})
		for _, text := range []string{lower, strings.ToUpper(lower), strings.ToUpper(lower[:9]) + lower[9:], std, strings.TrimRight(std, "="), url, strings.TrimRight(url, "="), std + "=", std[:43] + "A", std + "\n", "", lower + "00"} {
			_, err := s.Verify(signing.Message{Header: http.Header{"X-Sig": {text}}, Body: body}, keys, now, tolerance)
			good := false
			for _, form := range forms {
				good = good || form == text
			}
			if good {
				require.NoError(t, err, "%d %s", encoding, text)
			} else {
				require.ErrorIs(t, err, signing.ErrMalformedHeader, "%d %s", encoding, text)
			}
		}
		h := http.Header{}
		require.NoError(t, s.Sign(h, "", now, body, keys))
		require.Contains(t, forms, h.Get("X-Sig"))
	}
}

func TestKeyForms(t *testing.T) {
	raw := string([]byte{0xfb, 0xef, 0xff}) + "an odd key of 20 b"[:17]
	for form, texts := range map[signing.KeyForm][]string{
		signing.HexKey:       {hex.EncodeToString([]byte(raw)), strings.ToUpper(hex.EncodeToString([]byte(raw)))},
		signing.Base64URLKey: {base64.URLEncoding.EncodeToString([]byte(raw)), base64.RawURLEncoding.EncodeToString([]byte(raw))},
	} {
		s := described(t, signing.Description{Signed: "{body}", Key: form})
		for _, text := range texts {
			keys := ring(t, signing.Key{Secret: textSecret(t, text)})
			h := http.Header{}
			require.NoError(t, s.Sign(h, "", now, body, keys), text)
			require.Equal(t, hex.EncodeToString(macOf(raw, string(body))), h.Get("X-Sig"), text)
			_, err := s.Verify(signing.Message{Header: h, Body: body}, keys, now, tolerance)
			require.NoError(t, err)
		}
		_, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, "neither hex nor base64url!")}), &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Deduplicated: true})
		require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	}
}

func TestSpacedLists(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	s := described(t, signing.Description{SignatureLabel: "v1", TimestampLabel: "t", Signed: "{timestamp}.{body}", SpacedList: true})
	good := timestampBodyMAC(secretA, seconds(now), body)
	for value, ok := range map[string]bool{
		"t=" + seconds(now) + ", v1=" + good: true, "t=" + seconds(now) + ",v1=" + good: true, "t=" + seconds(now) + ",  v1=" + good: true,
		"t=" + seconds(now) + " ,v1=" + good: false, " t=" + seconds(now) + ",v1=" + good: false, "t=" + seconds(now) + ", v1= " + good: false,
	} {
		_, err := s.Verify(signing.Message{Header: http.Header{"X-Sig": {value}}, Body: body}, keys, now, tolerance)
		require.Equal(t, ok, err == nil, "%q: %v", value, err)
	}
	h := http.Header{}
	require.NoError(t, s.Sign(h, "", now, body, keys))
	require.Equal(t, "t="+seconds(now)+", v1="+good, h.Get("X-Sig"))
	// Groups while a secret is rotated.
	groups := described(t, signing.Description{SignatureLabel: "v1", Separator: ' ', Signed: "{body}"})
	mac := hex.EncodeToString(macOf(secretA, string(body)))
	_, err := groups.Verify(signing.Message{Header: http.Header{"X-Sig": {"v1=" + strings.Repeat("0", 64) + " v1=" + mac}}, Body: body}, keys, now, tolerance)
	require.NoError(t, err)
}

func TestSeveralSignatureHeaders(t *testing.T) {
	numbered := described(t, signing.Description{SignatureHeader: "X-Sig-1", MoreSignatureHeaders: []string{"X-Sig-2", "x-sig-3"}, SignaturePrefix: "s=", Signed: "{body}", SignWith: signing.EveryKey})
	repeated := described(t, signing.Description{SignatureRepeats: true, SignaturePrefix: "s=", Signed: "{body}", SignWith: signing.EveryKey})
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	good, bad := "s="+hex.EncodeToString(macOf(secretA, string(body))), "s="+strings.Repeat("0", 64)
	var many []string
	for range 17 {
		many = append(many, good)
	}
	for _, c := range []struct {
		s    *signing.Described
		h    http.Header
		want error
	}{
		{numbered, http.Header{"X-Sig-1": {good}}, nil},
		{numbered, http.Header{"X-Sig-3": {good}}, nil},
		{numbered, http.Header{"X-Sig-1": {bad}, "X-Sig-2": {good}}, nil},
		{numbered, http.Header{"X-Sig-1": {bad}, "x-sig-2": {bad}, "x-SIG-3": {good}}, nil},
		{numbered, http.Header{"X-Sig-1": {bad}, "X-Sig-2": {bad}}, signing.ErrSignatureMismatch},
		{numbered, http.Header{"X-Sig-1": {good}, "X-Sig-2": {"x"}}, signing.ErrMalformedHeader},
		{numbered, http.Header{"X-Sig-1": {good, good}}, signing.ErrRepeatedHeader},
		{numbered, http.Header{"X-Sig-2": {good}, "X-Sig-3": {good}, "x-sig-3": {good}}, nil}, // the canonical spelling counts
		{numbered, http.Header{"X-Sig-4": {good}}, signing.ErrNotSigned},
		{repeated, http.Header{"X-Sig": {good}}, nil},
		{repeated, http.Header{"X-Sig": {bad, bad, good}}, nil},
		{repeated, http.Header{"X-Sig": {bad, bad}}, signing.ErrSignatureMismatch},
		{repeated, http.Header{"X-Sig": {good, ""}}, signing.ErrMalformedHeader},
		{repeated, http.Header{"X-Sig": many}, signing.ErrMalformedHeader},
		{repeated, http.Header{"X-Sig": many[:16]}, nil},
		{repeated, http.Header{}, signing.ErrNotSigned},
	} {
		_, err := c.s.Verify(signing.Message{Header: c.h, Body: body}, keys, now, tolerance)
		require.ErrorIs(t, err, c.want, c.h)
	}
	both := ring(t, signing.Key{ID: "old", Secret: textSecret(t, secretA)}, signing.Key{ID: "new", Secret: textSecret(t, secretB)})
	for _, s := range []*signing.Described{numbered, repeated} {
		h := http.Header{}
		require.NoError(t, s.Sign(h, "", now, body, both))
		for _, text := range []string{secretA, secretB} {
			_, err := s.Verify(signing.Message{Header: h, Body: body}, ring(t, signing.Key{Secret: textSecret(t, text)}), now, tolerance)
			require.NoError(t, err)
		}
	}
}

// A signature in the body covers the fields that it names, and nothing else counts.
func TestSignatureInTheBody(t *testing.T) {
	s := described(t, signing.Description{
		SignatureField: "sig.value", Signed: "{timestamp}{field:sig.token}", TimestampField: "sig.time",
		IDField: "sig.token", TypeField: "event", TimeField: "sig.time",
	})
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	signed := func(unix, token, event string) signing.Message {
		return signing.Message{Header: http.Header{}, Body: fmt.Appendf(nil, `{"sig":{"time":"%s","token":"%s","value":"%x"},"event":"%s"}`, unix, token, macOf(secretA, unix+token), event)}
	}
	_, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}})
	require.ErrorContains(t, err, "do not cover the body")
	_, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s, signing.Stripe()}, UnsignedBody: true})
	require.ErrorContains(t, err, "it must be the last scheme")
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, UnsignedBody: true, Now: at(now)})
	require.NoError(t, err)

	verified, facts, err := v.VerifyFacts(signed(seconds(now), "tok", "opened"))
	require.NoError(t, err)
	require.True(t, now.Equal(verified.Timestamp))
	require.Equal(t, "tok", facts.ID)
	require.True(t, now.Equal(facts.Time))
	require.Empty(t, facts.Type)
	require.EqualValues(t, "opened", facts.UnsignedType)

	other := signed(seconds(now), "tok", "opened")
	for what, change := range map[string][2]string{"token": {`"tok"`, `"tokk"`}, "time": {seconds(now), seconds(now.Add(1e9))}, "signature": {`"value":"`, `"value":"0`}, "missing": {`"value"`, `"valu"`}} {
		m := signing.Message{Header: http.Header{}, Body: []byte(strings.Replace(string(other.Body), change[0], change[1], 1))}
		_, err := v.Verify(m)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, what)
	}
	_, err = v.Verify(signed(seconds(now.Add(-301e9)), "tok", "opened"))
	require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
	_, err = v.Verify(signing.Message{Header: http.Header{}, Body: []byte("no JSON")})
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.ErrorContains(t, s.Sign(http.Header{}, "", now, body, keys), "in the body")

	// Without an id that is signed, the signed text tells messages apart, and what is not
	// signed does not.
	d := s.Description()
	d.IDField = "event"
	v, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{described(t, d)}, UnsignedBody: true, Now: at(now)})
	require.NoError(t, err)
	key := func(m signing.Message) string {
		_, facts, err := v.VerifyFacts(m)
		require.NoError(t, err)
		require.Empty(t, facts.ID)
		return facts.DedupKey()
	}
	require.Equal(t, key(signed(seconds(now), "tok", "opened")), key(signed(seconds(now), "tok", "clicked")))
	require.NotEqual(t, key(signed(seconds(now), "tok", "opened")), key(signed(seconds(now), "other", "opened")))
}

func TestFormsAsParts(t *testing.T) {
	s := described(t, signing.Description{Signed: "{form:token}.{timestamp}|{body}", TimestampHeader: "X-Time"})
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	for form, ok := range map[string]bool{
		"token=a%20b&x=1": true, "x=1&token=": true, "x=1": false, "token=a&token=b": false, "token=a.b": false, "token=%zz": false, "token=a" + strings.Repeat("&x=1", 1000): false,
	} {
		err := s.Sign(http.Header{}, "", now, []byte(form), keys)
		require.Equal(t, ok, err == nil, "%.40s: %v", form, err)
	}
}

func TestDescriptionsThatReachTooFar(t *testing.T) {
	for problem, d := range map[string]signing.Description{
		"exclude each other: a signature is in one place": {SignatureHeader: "X-Sig", SignatureField: "sig", Signed: "{field:a}"},
		"cannot be signed as a whole":                     {SignatureField: "sig", Signed: "{body}"},
		"a signature in the body is one text":             {SignatureField: "sig", Signed: "{field:a}", SignatureRepeats: true},
		`SignatureField is "a..b"`:                        {SignatureField: "a..b", Signed: "{field:a}"},
		"Signed does not cover TimestampField":            {SignatureHeader: "X-Sig", TimestampField: "t", Signed: "{field:a}"},
		"SignatureLabel excludes MoreSignatureHeaders":    {SignatureHeader: "X-Sig", SignatureLabel: "v1", MoreSignatureHeaders: []string{"X-Sig-2"}, Signed: "{body}"},
		"are the same header":                             {SignatureHeader: "X-Sig", MoreSignatureHeaders: []string{"x-sig"}, Signed: "{body}"},
		"has an empty name":                               {SignatureHeader: "X-Sig", MoreSignatureHeaders: []string{""}, Signed: "{body}"},
		"it may have 15":                                  {SignatureHeader: "X-Sig", MoreSignatureHeaders: make([]string, 16), Signed: "{body}"},
		"is the only one":                                 {SignatureHeader: "X-Sig", SignatureRepeats: true, Algorithm: signing.Ed25519, Signed: "{body}"},
		"the Encoding of ECDSAP256 must be Base64":        {SignatureHeader: "X-Sig", Algorithm: signing.ECDSAP256, Signed: "{body}"},
		"SpacedList and List need a SignatureLabel":       {SignatureHeader: "X-Sig", SpacedList: true, Signed: "{body}"},
		"it has more than 32 parts":                       {SignatureHeader: "X-Sig", Signed: manyParts()},
	} {
		d.Name = "x"
		_, err := signing.NewDescribed(d)
		require.ErrorContains(t, err, problem)
	}
}

// Parts that reach beyond the body cost no allocation. Parts of the body by themselves do.
func TestReachAllocatesNothing(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	for _, d := range []signing.Description{
		{Signed: "{body}{timestamp}", TimestampHeader: "X-Time"},
		{Signed: "{method}{url}{body}{timestamp}", TimestampHeader: "X-Time", URL: "https://example.com/"},
		{Signed: "{body}.{header:Content-Type}.{timestamp}", TimestampHeader: "X-Time"},
		{Signed: "{body}", MoreSignatureHeaders: []string{"X-Sig-2"}},
		{Signed: "{body}", SignatureRepeats: true, Encoding: signing.Base64URL},
		{Signed: "{timestamp}.{body}", SignatureLabel: "v1", TimestampLabel: "t", SpacedList: true, Key: signing.HexKey, Encoding: signing.HexAnyCase},
	} {
		s := described(t, d)
		m := delivery(t, s, keys, 1<<10)
		v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Deduplicated: true})
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(200, func() { _, err = v.Verify(m) })
		require.NoError(t, err)
		if !race.Enabled {
			require.Zero(t, allocs, d.Signed)
		}
	}
}

func manyParts() (text string) {
	for i := range 17 {
		text += fmt.Sprintf("{header:X-%d}.", i)
	}
	return text + "{body}"
}

// A description does not change with what its caller does afterwards.
func TestDescriptionIsKept(t *testing.T) {
	d := signing.Description{Name: "x", SignatureHeader: "X-Sig", MoreSignatureHeaders: []string{"X-Sig-2"}, Signed: "{body}"}
	s := described(t, d)
	d.MoreSignatureHeaders[0] = "X-Other"
	s.Description().MoreSignatureHeaders[0] = "X-Other"
	require.Equal(t, []string{"X-Sig-2"}, s.Description().MoreSignatureHeaders)
}

func ecdsaKey(tb testing.TB) (*ecdsa.PrivateKey, signing.Secret) {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(tb, err)
	public, err := signing.ParseECDSAPublicKey(base64.StdEncoding.EncodeToString(der))
	require.NoError(tb, err)
	return private, public
}

func TestECDSA(t *testing.T) {
	private, public := ecdsaKey(t)
	s := described(t, signing.Description{Algorithm: signing.ECDSAP256, Encoding: signing.Base64, TimestampHeader: "X-Time", Signed: "{timestamp}{body}{url}", URL: "https://example.com/x"})
	sum := sha256.Sum256([]byte(seconds(now) + string(body) + "https://example.com/x"))
	signature, err := private.Sign(rand.Reader, sum[:], crypto.SHA256)
	require.NoError(t, err)
	h := http.Header{"X-Time": {seconds(now)}, "X-Sig": {base64.StdEncoding.EncodeToString(signature)}}
	keys := ring(t, signing.Key{Secret: public})
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Now: at(now)})
	require.NoError(t, err)
	for range 2 { // the pool's state comes back clean
		_, err = v.Verify(signing.Message{Header: h, Body: body})
		require.NoError(t, err)
	}
	_, err = v.Verify(signing.Message{Header: h, Body: append([]byte{' '}, body...)})
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	for i := range signature {
		bad := append([]byte(nil), signature...)
		bad[i] ^= 1
		other := http.Header{"X-Time": h["X-Time"], "X-Sig": {base64.StdEncoding.EncodeToString(bad)}}
		_, err := v.Verify(signing.Message{Header: other, Body: body})
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	}
	for _, text := range []string{"", "AA==", base64.StdEncoding.EncodeToString(make([]byte, 73)), strings.Repeat("A", 95), base64.StdEncoding.EncodeToString(signature) + "\n"} {
		refused(t, s, signing.Message{Header: http.Header{"X-Time": h["X-Time"], "X-Sig": {text}}, Body: body}, keys, now, signing.ErrMalformedHeader, text)
	}
	_, another := ecdsaKey(t)
	_, err = s.Verify(signing.Message{Header: h, Body: body}, ring(t, signing.Key{Secret: another}), now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.ErrorIs(t, s.Sign(http.Header{}, "", now, body, keys), signing.ErrSecretUnsuited)
	// A public key is of no use to somebody who wants to sign with it.
	for _, scheme := range []signing.Scheme{signing.GitHub(), signing.StandardWebhooks{}, signing.TimestampBody{}, signing.Discord()} {
		_, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Deduplicated: true})
		require.ErrorIs(t, err, signing.ErrSecretUnsuited, scheme.Name())
	}
	require.NotEmpty(t, v.Diagnose(signing.Message{Header: h, Body: append([]byte{' '}, body...)}))
}

func TestParseECDSAPublicKey(t *testing.T) {
	private, _ := ecdsaKey(t)
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	s, err := signing.ParseECDSAPublicKey(text)
	require.NoError(t, err)
	require.Equal(t, text, s.Reveal())
	require.Len(t, s.Fingerprint(), 8)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	other, err := x509.MarshalPKIXPublicKey(&p384.PublicKey)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	for _, text := range []string{
		"", "x", text + "x", strings.Repeat("A", 2000), base64.StdEncoding.EncodeToString(other), base64.StdEncoding.EncodeToString(secret),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), base64.StdEncoding.EncodeToString(der[:80]),
	} {
		_, err := signing.ParseECDSAPublicKey(text)
		require.ErrorIs(t, err, signing.ErrSecret, text)
	}
}
