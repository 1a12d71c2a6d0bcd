package jose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

// A header is refused as a wrong request is, unless a key of the sender has signed exactly
// its first two parts.
func FuzzTokens(f *testing.F) {
	all := senders()
	for _, s := range all {
		f.Add(s.message().Header[s.name][0], []byte(s.body))
	}
	f.Add("Bearer e30.e30.AA", []byte("{}"))
	f.Add("Bearer eyJhbGciOiJub25lIn0.e30.AA", []byte(nil))
	f.Fuzz(func(t *testing.T, value string, body []byte) {
		for name, s := range all {
			m := signing.Message{Method: http.MethodPost, URL: s.url, Header: http.Header{s.name: {value}}, Body: body}
			v := s.verifier(t)
			_, err := v.Verify(m)
			if err != nil {
				if pre := v.Precheck(m.Header); pre != nil && pre.Error() != err.Error() {
					t.Fatalf("%s: %v before, and %v", name, pre, err)
				}
				known := false
				for _, of := range refusals {
					known = known || errors.Is(err, of)
				}
				if !known || len(value) > 20 && strings.Contains(err.Error(), value) {
					t.Fatalf("%s: %v", name, err)
				}
				continue
			}
			text := strings.TrimPrefix(value, s.prefix)
			if text[:strings.LastIndexByte(text, '.')] != strings.TrimSuffix(token(s.alg, nil, s.header, s.claims), ".") {
				t.Fatalf("%s takes %q, which was not signed", name, value)
			}
		}
	})
}

// FuzzKeySets: a key that is read is one that fits.
func FuzzKeySets(f *testing.F) {
	f.Add([]byte(setOf(jwkOf(kid, &rsaKey.PublicKey), jwkOf("ec", &ecKey.PublicKey))))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB","kid":"a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := jose.ParseJWKS(text)
		for id, key := range keys {
			r, isRSA := key.(*rsa.PublicKey)
			_, isEC := key.(*ecdsa.PublicKey)
			if id == "" || err != nil || !isRSA && !isEC || isRSA && (r.N.BitLen() < 2048 || r.E < 3) {
				t.Fatalf("%q: %v", text, key)
			}
		}
	})
}

// BenchmarkVerify is a request of Pub/Sub and one of Plaid, each beside the bare check of
// its signature.
func BenchmarkVerify(b *testing.B) {
	for _, name := range []string{"google-pubsub", "plaid"} {
		s := senders()[name]
		v, m := s.verifier(b), s.message()
		b.Run(s.alg, func(b *testing.B) {
			for b.Loop() {
				if _, err := v.Verify(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	sum := sha256.Sum256([]byte(pushed))
	b.Run("RS256-alone", func(b *testing.B) {
		signature := must(rsa.SignPKCS1v15(nil, rsaKey, crypto.SHA256, sum[:]))
		for b.Loop() {
			if rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, sum[:], signature) != nil {
				b.Fatal("refused")
			}
		}
	})
	b.Run("ES256-alone", func(b *testing.B) {
		signature := must(ecKey.Sign(nil, sum[:], crypto.SHA256))
		for b.Loop() {
			if !ecdsa.VerifyASN1(&ecKey.PublicKey, sum[:], signature) {
				b.Fatal("refused")
			}
		}
	})
}
