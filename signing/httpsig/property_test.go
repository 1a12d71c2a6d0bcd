package httpsig_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// everything covers each kind of component.
var everything = []string{
	"@method", "@authority", "@scheme", "@request-target", "@path", "@query", `@query-param;name="tenant"`, "@target-uri",
	"content-digest", "content-type", "x-event-id", `x-list;key="a"`, "x-bytes;bs",
}

func everythingScheme(tb testing.TB, p keyPair) *httpsig.Scheme {
	tb.Helper()
	cfg := config()
	cfg.URL, cfg.Signer, cfg.SignerID = "https://example.com", p.signer, p.key.ID
	cfg.NeedNonce = p.signer != nil // an HMAC's request is the same in every process that fuzzes
	return scheme(tb, p.algorithm, everything, cfg)
}

func everythingSigned(tb testing.TB, p keyPair) (*httpsig.Scheme, *signing.Keyring, signing.Message) {
	tb.Helper()
	s, keys := everythingScheme(tb, p), ring(tb, p.key)
	m := signing.Message{Method: "POST", URL: "/hooks?tenant=7", Body: []byte(`{"type":"paid"}`), Header: http.Header{
		"Content-Type": {"application/json"}, "X-List": {"a=1;b, c"}, "X-Bytes": {"a, b"},
	}}
	require.NoError(tb, s.SignMessage(&m, eventID, now, keys))
	_, err := s.Verify(m, keys, now, tolerance)
	require.NoError(tb, err)
	return s, keys, m
}

// No byte of a request can be changed, taken out or put in: not of a header that is signed, not
// of the two headers of the signature, not of the target, the method or the body. Each byte is
// changed in a few ways with HMAC, and the drawn ones with every algorithm.
func TestPropertyTamperingIsRefused(t *testing.T) {
	tampered := func(m signing.Message, part string, change func(string) string) signing.Message {
		m.Header = m.Header.Clone()
		switch part {
		case "body":
			m.Body = []byte(change(string(m.Body)))
		case "method":
			m.Method = change(m.Method)
		case "url":
			m.URL = change(m.URL)
		default:
			m.Header[part] = []string{change(m.Header[part][0])}
		}
		return m
	}
	text := func(m signing.Message, part string) string {
		switch part {
		case "body":
			return string(m.Body)
		case "method":
			return m.Method
		case "url":
			return m.URL
		}
		return m.Header[part][0]
	}
	parts := []string{"body", "method", "url", "Content-Type", "Content-Digest", "X-Event-Id", "X-List", "X-Bytes", "Signature", "Signature-Input"}
	// The members that are not signed can change, and the spaces between them.
	harmless := func(part, after string) bool {
		value, _, ok := httpsig.Member(after, "a")
		return part == "X-List" && ok && value == "1;b"
	}
	s, keys, m := everythingSigned(t, keyPair{signing.HMACSHA256, nil, hmacKey(t, secretA)})
	for _, part := range parts {
		for i := range text(m, part) {
			for _, change := range []func(string) string{
				func(s string) string { return s[:i] + string([]byte{s[i] ^ 1}) + s[i+1:] },
				func(s string) string { return s[:i] + string([]byte{s[i] ^ 0x20}) + s[i+1:] },
				func(s string) string { return s[:i] + s[i+1:] },
				func(s string) string { return s[:i] + " " + s[i:] },
				func(s string) string { return s[:i] },
			} {
				bad := tampered(m, part, change)
				if text(bad, part) == text(m, part) || harmless(part, text(bad, part)) {
					continue
				}
				_, err := s.Verify(bad, keys, now, tolerance)
				require.Error(t, err, "%s: %q", part, text(bad, part))
			}
		}
	}
	all := append([]keyPair{{signing.HMACSHA256, nil, hmacKey(t, secretA)}}, pairs()...)
	type made struct {
		s    *httpsig.Scheme
		keys *signing.Keyring
		m    signing.Message
	}
	var requests []made
	for _, p := range all {
		s, keys, m := everythingSigned(t, p)
		requests = append(requests, made{s, keys, m})
	}
	rapid.Check(t, func(t *rapid.T) {
		r := requests[rapid.IntRange(0, len(requests)-1).Draw(t, "algorithm")]
		part := rapid.SampledFrom(parts).Draw(t, "part")
		before := text(r.m, part)
		from := rapid.IntRange(0, len(before)).Draw(t, "from")
		to := rapid.IntRange(from, min(len(before), from+3)).Draw(t, "to")
		put := rapid.OneOf(rapid.StringN(0, 3, 8), rapid.SampledFrom([]string{";", ",", "\n", "\"", "=", ":", "\\", "%00"})).Draw(t, "put")
		after := before[:from] + put + before[to:]
		if after == before || harmless(part, after) {
			return
		}
		bad := tampered(r.m, part, func(string) string { return after })
		if _, err := r.s.Verify(bad, r.keys, now, tolerance); err == nil {
			t.Fatalf("%s: %q is taken for %q", part, after, before)
		}
	})
}

// A signature verifies under the key that made it alone, and a request that is signed by one
// algorithm under no other.
func TestOtherKeysAndAlgorithmsRefuse(t *testing.T) {
	all := append([]keyPair{{signing.HMACSHA256, nil, hmacKey(t, secretA)}}, pairs()...)
	for i, p := range all {
		_, _, m := everythingSigned(t, p)
		for j, q := range all {
			cfg := config()
			cfg.URL, cfg.NeedNonce = "https://example.com", false
			other := scheme(t, q.algorithm, everything, cfg)
			key := q.key
			key.ID = p.key.ID // even if it claims to be that key
			_, err := other.Verify(m, ring(t, key), now, tolerance)
			if i == j {
				require.NoError(t, err)
			} else {
				require.Error(t, err, "%d as %d", p.algorithm, q.algorithm)
			}
		}
	}
}

// The strict reader takes what serialisers write (RFC 9651 section 4.1), and not what only
// lenient readers take (section 4.2).
func TestStructuredFields(t *testing.T) {
	for _, text := range []string{
		"a", "a;x", "a=1", "a=-1", "a=0", "a=123456789012345", "a=1.5", "a=-0.25", "a=123456789012.125", `a="x"`, `a="\"\\"`, "a=tok/en:*", "a=*", "a=:AA==:", "a=::", "a=?0", "a=@1659578233",
		`a=%"f%c3%bc"`, "a=()", `a=("x" 1 tok);y=?0`, "a=1;b;c=2, b, *=1", "a=1\t ,\t b=2", "a_-.*0=1",
	} {
		_, _, ok := httpsig.Member(text, "a")
		require.True(t, ok, text)
	}
	for _, text := range []string{
		"", ",", "a,", ",a", "a,,b", " a", "a ", "A=1", "1=1", "a=", "a=1 2", "a=?1", "a;b=?1", "a=?2", "a=?", "a=01", "a=-0", "a=--1", "a=1234567890123456", "a=1.", "a=1.1234", "a=1.50", "a=1234567890123.1",
		`a="`, `a="\x"`, `a="` + "\x7f" + `"`, `a="ä"`, "a=:AA=:", "a=:A===:", "a=:AB==:", "a=:AA==", "a=:A A=:", "a=:AA\n==:", "a=:AA==AA==:", "a=:AA\n\n\n\n==:", "a=:" + strings.Repeat("A", 62) + "==AAAA:", "a=( )", "a=(1  2)", "a=(1 2 )", "a=(1", "a=(1,2)", "a=((1))",
		"a= 1", "a =1", "a; b", "a;B", "a;", "a=1, a=2", "a=@", "a=@1.5", `a=%"%C3"`, `a=%"%c"`, `a=%x`, `a=%"x`, "a=" + strings.Repeat("1;a", 20) + ";b;b;b", strings.Repeat("k", 65) + "=1",
		"a=(" + strings.Repeat("1 ", 32) + "1)", "a" + strings.Repeat(";x", 17), "z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, za, zb, zc, zd, ze, zf, zg",
	} {
		_, _, ok := httpsig.Member(text, "a")
		require.False(t, ok, text)
	}
}

// FuzzRequests reads arbitrary headers and bodies. A request that is not signed is refused,
// also by a scheme that has read others before, and Precheck refuses nothing that Verify
// takes.
func FuzzRequests(f *testing.F) {
	p := keyPair{signing.HMACSHA256, nil, hmacKey(f, secretA)}
	s, keys, m := everythingSigned(f, p)
	input, signature, digest := m.Header.Get("Signature-Input"), m.Header.Get("Signature"), m.Header.Get("Content-Digest")
	f.Add(input, signature, digest, "a=1;b, c", m.URL, m.Body)
	// Neither the label is signed nor the host of an absolute target, as proxies are sent it.
	_, signed, _ := strings.Cut(input, "=")
	_, mac, _ := strings.Cut(signature, "=")
	f.Add("other="+signed, "other="+mac, digest, "a=1;b, c", "http://other.example"+m.URL, m.Body)
	f.Add(`sig1=("@query-param";name="a" "x";bs);created=1700000000, b=()`, "sig1=:AA==:, b=::", "sha-512=::", `a=(1 "\"");b`, "https://x?%zz=+&a", []byte(nil))
	f.Fuzz(func(t *testing.T, in, sig, dig, list, url string, body []byte) {
		h := m.Header.Clone()
		h["Signature-Input"], h["Signature"], h["Content-Digest"], h["X-List"] = []string{in}, []string{sig}, []string{dig}, []string{list}
		cold := everythingScheme(t, p)
		_, err := s.Verify(signing.Message{Method: "POST", URL: url, Header: h, Body: body}, keys, now, tolerance)
		_, again := cold.Verify(signing.Message{Method: "POST", URL: url, Header: h, Body: body}, keys, now, tolerance)
		if (err == nil) != (again == nil) {
			t.Fatalf("one scheme says %v, another %v", err, again)
		}
		// Beside the signature that counts there may be others.
		if err == nil && (!strings.Contains(sig, mac) || !strings.Contains(in, signed) || dig != digest || !strings.HasSuffix(url, m.URL) || !bytes.Equal(body, m.Body)) {
			t.Fatalf("%q %q %q %q %q is taken", in, sig, dig, url, body)
		}
		if err == nil && s.Precheck(h, now, tolerance) != nil {
			t.Fatal("Precheck refuses what Verify takes")
		}
	})
}

// FuzzStructured finds no text that the reader takes and whose members are not a part of it.
func FuzzStructured(f *testing.F) {
	f.Add("a=1;b, c=(1 2);x, d", "c")
	f.Add(`a=:AA==:, b=%"%c3"`, "a")
	f.Fuzz(func(t *testing.T, text, key string) {
		value, found, ok := httpsig.Member(text, key)
		if found && (!ok || !strings.Contains(text, strings.TrimPrefix(value, "?1"))) {
			t.Fatalf("%q has the member %q", text, value)
		}
		if raw, is := strings.CutPrefix(text, "a=:"); ok && is && strings.HasSuffix(raw, ":") && strings.Count(raw, ":") == 1 {
			if _, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(raw, ":")); err != nil {
				t.Fatalf("%q is no base64", raw)
			}
		}
	})
}
