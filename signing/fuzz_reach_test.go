package signing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/surehook/surehook/signing"
)

// A signature holds for its values, body and time, and for no other way in which the same
// text can be split.
func FuzzSignedTexts(f *testing.F) {
	for _, value := range []string{"a", "", "a.b", "a|b", "1700000000", ".", "a 1", "é"} {
		for _, body := range []string{`{}`, ".1700000000", "a.b|1700000000.x", "1700000000|1700000000", "..||"} {
			f.Add(value, value, []byte(body))
		}
	}
	keys := ring(f, signing.Key{Secret: textSecret(f, secretA)})
	unix := seconds(now)
	f.Fuzz(func(t *testing.T, a, b string, body []byte) {
		for _, form := range []struct {
			signed      string
			first, last byte   // what separates the three
			order       [3]int // which of a, b and the body comes where
			time        int    // -1: before them, 1: behind them
		}{
			{"{header:X-A}.{header:X-B}|{body}", '.', '|', [3]int{0, 1, 2}, 0},
			{"{body}.{header:X-A}|{header:X-B}", '.', '|', [3]int{2, 0, 1}, 0},
			{"{header:X-A}|{body}.{header:X-B}", '|', '.', [3]int{0, 2, 1}, 0},
			{"{header:X-A}.{body}.{header:X-B}", '.', '.', [3]int{0, 2, 1}, 0},
			{"{timestamp}{header:X-A}.{body}|{header:X-B}", '.', '|', [3]int{0, 2, 1}, -1},
			{"{header:X-A}.{header:X-B}.{body}{timestamp}", '.', '.', [3]int{0, 1, 2}, 1},
		} {
			d := signing.Description{Name: "texts", SignatureHeader: "X-Sig", Signed: form.signed}
			if form.time != 0 {
				d.TimestampHeader = "X-Time"
			}
			s, err := signing.NewDescribed(d)
			if err != nil {
				t.Fatal(err)
			}
			h := http.Header{"X-A": {a}, "X-B": {b}}
			if err := s.Sign(h, "", now, body, keys); err != nil {
				if !errors.Is(err, signing.ErrMalformedHeader) {
					t.Fatal(err)
				}
				continue
			}
			values := [3]string{a, b, string(body)}
			text := values[form.order[0]] + string(form.first) + values[form.order[1]] + string(form.last) + values[form.order[2]]
			if whole := map[int]string{0: text, -1: unix + text, 1: text + unix}[form.time]; h.Get("X-Sig") != hex.EncodeToString(macOf(secretA, whole)) {
				t.Fatalf("%s does not sign %q", form.signed, whole)
			}
			for i := range text {
				for j := i + 1; j < len(text) && text[i] == form.first; j++ {
					if text[j] != form.last {
						continue
					}
					var other [3]string
					other[form.order[0]], other[form.order[1]], other[form.order[2]] = text[:i], text[i+1:j], text[j+1:]
					h2 := http.Header{"X-A": {other[0]}, "X-B": {other[1]}, "X-Sig": h["X-Sig"], "X-Time": {unix}}
					_, err := s.Verify(signing.Message{Header: h2, Body: []byte(other[2])}, keys, now, tolerance)
					if (err == nil) != (other == values) {
						t.Fatalf("%s: %q is also taken for %q: %v", form.signed, text, other, err)
					}
				}
			}
		}
	})
}

// Each encoding takes the texts that a lenient reader takes for the same bytes, if they are
// of its forms, and no others.
func FuzzEncodings(f *testing.F) {
	raw := macOf(secretA, string(body))
	for _, text := range []string{hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), "", "=", strings.Repeat("A", 43), strings.Repeat("A", 42) + "=="} {
		f.Add(text)
	}
	keys := ring(f, signing.Key{Secret: textSecret(f, secretA)})
	f.Fuzz(func(t *testing.T, text string) {
		for encoding, read := range map[signing.Encoding]func(string) ([]byte, error){
			signing.Hex:            hex.DecodeString,
			signing.HexAnyCase:     hex.DecodeString,
			signing.Base64:         base64.StdEncoding.DecodeString,
			signing.Base64Unpadded: func(s string) ([]byte, error) { return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "=")) },
			signing.Base64URL:      func(s string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "=")) },
		} {
			s := described(t, signing.Description{Signed: "{body}", Encoding: encoding})
			_, err := s.Verify(signing.Message{Header: http.Header{"X-Sig": {text}}, Body: body}, keys, now, tolerance)
			got, readErr := read(text)
			same := readErr == nil && bytes.Equal(got, raw)
			if err == nil && !same {
				t.Fatalf("%d takes %q, which stands for other bytes", encoding, text)
			}
			if readErr != nil && !errors.Is(err, signing.ErrMalformedHeader) {
				t.Fatalf("%d: %q: %v", encoding, text, err)
			}
		}
	})
}

// A signature in a body that strangers send does no harm, and verifies only if it is right.
func FuzzSignatureInTheBody(f *testing.F) {
	f.Add([]byte(`{"sig":{"time":"1700000000","token":"a","value":"00"},"event":"x"}`))
	f.Add([]byte(`{"sig":{"time":1700000000,"token":"a\u0062","value":"` + strings.Repeat("0", 64) + `"}}`))
	f.Add([]byte(`{"sig":[],"sig":{}}`))
	keys := ring(f, signing.Key{Secret: textSecret(f, secretA)})
	f.Fuzz(func(t *testing.T, doc []byte) {
		s := described(t, signing.Description{SignatureField: "sig.value", Signed: "{timestamp}{field:sig.token}", TimestampField: "sig.time", IDField: "sig.token"})
		v, err := s.Verify(signing.Message{Body: doc}, keys, now, tolerance)
		if err == nil {
			unix, _ := signing.JSONText(doc, "sig.time")
			token, _ := signing.JSONText(doc, "sig.token")
			value, _ := signing.JSONText(doc, "sig.value")
			if value != hex.EncodeToString(macOf(secretA, unix+token)) {
				t.Fatalf("%q verifies", doc)
			}
		}
		if f := s.Facts(signing.Message{Body: doc}, v).Of(signing.Message{Body: doc}); f.DedupKey() == "" {
			t.Fatal("no key of deduplication")
		}
	})
}

// The base64 of a signature, and its ASN.1, come from strangers.
func FuzzECDSASignatures(f *testing.F) {
	_, public := ecdsaKey(f)
	keys := ring(f, signing.Key{Secret: public})
	for _, text := range []string{"", "MEUCIQ==", strings.Repeat("A", 96), "MAYCAQECAQE=", strings.Repeat("/", 96)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := described(t, signing.Description{Algorithm: signing.ECDSAP256, Encoding: signing.Base64, Signed: "{body}"})
		h := http.Header{"X-Sig": {text}}
		before := s.Precheck(h, now, tolerance)
		_, err := s.Verify(signing.Message{Header: h, Body: body}, keys, now, tolerance)
		if err == nil || before == nil && !errors.Is(err, signing.ErrSignatureMismatch) || before != nil && before.Error() != err.Error() {
			t.Fatalf("%q: Precheck %v, Verify %v", text, before, err)
		}
	})
}
