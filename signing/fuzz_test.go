package signing_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/surehook/surehook/signing"
)

// Precheck and Verify answer alike, and nothing that was not signed verifies.
func FuzzPrecheck(f *testing.F) {
	f.Add("Webhook-Id", eventID, "1700000000", publishedV1, strings.Repeat("0f", 32), int64(1700000000))
	f.Add("Webhook-Id", eventID, "1700000000", publishedV1a, strings.Repeat("0f", 32), int64(1700000000))
	f.Add("Webhook-Id", eventID, "1700000000", publishedV1, strings.Repeat("0f", 32), int64(1700000400))
	f.Add("webhook-id", "a.b", "+1", "v1, v1a,x ,, v1", "", int64(-1))
	f.Add("WEBHOOK-SIGNATURE", "", "99999999999", publishedV1a, "F", int64(1)<<62)
	keys := ringOf(f, publishedHMAC, publishedPublic)
	f.Fuzz(func(t *testing.T, name, id, timestamp, signature, hexMAC string, clock int64) {
		h := http.Header{
			"Webhook-Timestamp":   {timestamp},
			"Webhook-Signature":   {signature},
			"Webhook-Hmac-Sha256": {hexMAC},
		}
		h[name] = append(h[name], id)
		now := time.Unix(clock, 0)
		for _, scheme := range signing.DefaultSchemes() {
			before := scheme.Precheck(h, now, tolerance)
			_, err := scheme.Verify(signing.Message{Header: h, Body: []byte("never signed")}, keys, now, tolerance)
			switch {
			case err == nil:
				t.Fatalf("%s: verified", scheme.Name())
			case before == nil && !errors.Is(err, signing.ErrSignatureMismatch):
				t.Fatalf("%s: Precheck accepts what Verify answers with %v", scheme.Name(), err)
			case before != nil && before.Error() != err.Error():
				t.Fatalf("%s: Precheck says %v, Verify %v", scheme.Name(), before, err)
			}
		}
	})
}

// A signed message verifies; with one byte changed, it does not.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(`{"id":"evt_1"}`), "evt_1", int64(1700000000), uint(3), byte(1))
	f.Add([]byte{}, "-", int64(1), uint(0), byte(0))
	keys := ringOf(f, publishedHMAC, publishedPrivate)
	f.Fuzz(func(t *testing.T, body []byte, id string, unix int64, where uint, flip byte) {
		at := time.Unix(unix, 0)
		for _, scheme := range signing.DefaultSchemes() {
			m := signing.Message{Header: http.Header{}, Body: body}
			if err := scheme.Sign(m.Header, id, at, body, keys); err != nil {
				if !errors.Is(err, signing.ErrMalformedHeader) {
					t.Fatal(err)
				}
				continue
			}
			if _, err := scheme.Verify(m, keys, at, tolerance); err != nil {
				t.Fatalf("%s: %v", scheme.Name(), err)
			}
			for _, changed := range [][]byte{append(bytes.Clone(body), flip), append([]byte{flip}, body...), flipped(body, where, flip)} {
				if bytes.Equal(changed, body) {
					continue
				}
				m.Body = changed
				if _, err := scheme.Verify(m, keys, at, tolerance); !errors.Is(err, signing.ErrSignatureMismatch) {
					t.Fatalf("%s: another body: %v", scheme.Name(), err)
				}
			}
		}
	})
}

func flipped(body []byte, where uint, flip byte) []byte {
	changed := bytes.Clone(body)
	if len(changed) > 0 {
		changed[where%uint(len(changed))] ^= flip
	}
	return changed
}

// A secret is given back as it was, or refused without a trace of it.
func FuzzParseSecret(f *testing.F) {
	for _, text := range []string{"", publishedHMAC, publishedPrivate, publishedSeed, publishedPublic, plainText, " " + plainText, plainText + "\n", plainText + " " + plainText, "whsec_" + b64(64), "v1,whsec_", "whsk_", "[secret 00000000]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := signing.ParseSecret(text)
		if err != nil {
			if !errors.Is(err, signing.ErrSecret) || s != (signing.Secret{}) {
				t.Fatalf("%v", err)
			}
			if len(text) > 24 && strings.Contains(err.Error(), text[6:]) {
				t.Fatal("the error holds the text")
			}
			return
		}
		if s.Reveal() != text || strings.Contains(s.String(), text) {
			t.Fatal("not given back, or printed")
		}
		if _, err := signing.ParseSecret(s.String()); err == nil {
			t.Fatal("a printed secret is taken for a secret")
		}
	})
}
