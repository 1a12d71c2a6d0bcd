package httpsig_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// request of 1 KiB, as a sender of webhooks would sign it, and its verifier.
func typical(tb testing.TB, algorithm signing.Algorithm, signer crypto.Signer, key signing.Key) (*httpsig.Scheme, *signing.Verifier, signing.Message) {
	tb.Helper()
	s := scheme(tb, algorithm, []string{"@method", "@target-uri", "content-digest", "content-type"}, httpsig.Config{URL: url, NeedKeyID: true, Signer: signer, SignerID: key.ID})
	keys := ring(tb, key)
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, Now: func() time.Time { return now }})
	require.NoError(tb, err)
	return s, v, signed(tb, s, keys, strings.Repeat("x", 1<<10))
}

// BenchmarkVerify sets each algorithm beside the bare operation: the digest of the body, and the
// signature over the same text.
func BenchmarkVerify(b *testing.B) {
	for _, p := range append([]keyPair{{signing.HMACSHA256, nil, hmacKey(b, secretA)}}, pairs()...) {
		name := [...]string{"hmac-sha256", "", "", "", "ed25519", "ecdsa-p256-sha256", "rsa-v1_5-sha256", "rsa-pss-sha512"}[p.algorithm]
		s, v, m := typical(b, p.algorithm, p.signer, p.key)
		b.Run(name+"/1KiB", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(m); err != nil {
					b.Fatal(err)
				}
			}
		})
		base, err := s.Base(m, now)
		require.NoError(b, err)
		bare := bareOperation(b, p, []byte(base), m)
		b.Run(name+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !bare() {
					b.Fatal("it does not verify")
				}
			}
		})
	}
}

func bareOperation(b *testing.B, p keyPair, base []byte, m signing.Message) func() bool {
	b.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimPrefix(m.Header.Get("Signature"), "sig1="), ":"))
	require.NoError(b, err)
	digest := sha256.Sum256(m.Body)
	body := func() bool {
		sum := sha256.Sum256(m.Body)
		return subtle.ConstantTimeCompare(sum[:], digest[:]) == 1
	}
	switch p.algorithm {
	case signing.Ed25519:
		public := p.signer.Public().(ed25519.PublicKey)
		return func() bool { return ed25519.Verify(public, base, raw) && body() }
	case signing.ECDSAP256:
		public, der := p.signer.Public().(*ecdsa.PublicKey), httpsig.ToASN1(raw)
		return func() bool {
			sum := sha256.Sum256(base)
			return ecdsa.VerifyASN1(public, sum[:], der) && body()
		}
	case signing.RSASHA256:
		public := p.signer.Public().(*rsa.PublicKey)
		return func() bool {
			sum := sha256.Sum256(base)
			return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], raw) == nil && body()
		}
	case signing.RSAPSSSHA512:
		public, opts := p.signer.Public().(*rsa.PublicKey), &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		return func() bool {
			sum := sha512.Sum512(base)
			return rsa.VerifyPSS(public, crypto.SHA512, sum[:], raw, opts) == nil && body()
		}
	}
	mac := hmac.New(sha256.New, []byte(secretA)) // keyed once, which is the fastest way
	sum := make([]byte, 0, sha256.Size)
	return func() bool {
		mac.Reset()
		mac.Write(base)
		return hmac.Equal(mac.Sum(sum), raw) && body()
	}
}

// An HMAC verifies without allocating, once a request of the sender's has been verified.
func TestVerifyingAllocatesNothing(t *testing.T) {
	_, v, m := typical(t, signing.HMACSHA256, nil, hmacKey(t, secretA))
	var err error
	allocs := testing.AllocsPerRun(200, func() {
		if err = v.Precheck(m.Header); err == nil {
			_, err = v.Verify(m)
		}
	})
	require.NoError(t, err)
	if !race.Enabled {
		require.Zero(t, allocs)
	}
}
