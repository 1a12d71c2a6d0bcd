package signing_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// BenchmarkVerifyReach is for what a text has besides its body.
func BenchmarkVerifyReach(b *testing.B) {
	for name, d := range map[string]signing.Description{
		"behind the body": {Signed: "{body}{timestamp}", TimestampHeader: "X-Time"},
		"a header":        {Signed: "{body}.{header:Content-Type}.{timestamp}", TimestampHeader: "X-Time"},
		"two headers":     {Signed: "{body}", MoreSignatureHeaders: []string{"X-Sig-2"}},
		"a digest":        {Signed: "{timestamp}.{digest:sha256:hex}", TimestampHeader: "X-Time"},
	} {
		b.Run(name+"/1KiB", func(b *testing.B) {
			s := described(b, d)
			keys := ring(b, signing.Key{Secret: textSecret(b, secretA)})
			benchmarkVerify(b, s, keys, delivery(b, s, keys, 1<<10))
		})
	}
}

// BenchmarkVerifyPublic sets each public key's scheme beside the bare operation.
func BenchmarkVerifyPublic(b *testing.B) {
	b.Run("ed25519/1KiB", func(b *testing.B) {
		keys := ring(b, signing.Key{Secret: privateKey(b, secretA)})
		benchmarkVerify(b, signing.Discord(), keys, delivery(b, signing.Discord(), keys, 1<<10))
	})
	b.Run("ed25519/bare", func(b *testing.B) {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(b, err)
		text := make([]byte, 10+1<<10)
		signature := ed25519.Sign(private, text)
		b.ReportAllocs()
		for b.Loop() {
			if !ed25519.Verify(public, text, signature) {
				b.Fatal("it does not verify")
			}
		}
	})
	private, public := ecdsaKey(b)
	stamp := seconds(time.Now())
	text := append([]byte(stamp), make([]byte, 1<<10)...)
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
	require.NoError(b, err)
	b.Run("ecdsa/1KiB", func(b *testing.B) {
		s := described(b, signing.Description{Algorithm: signing.ECDSAP256, Encoding: signing.Base64, TimestampHeader: "X-Time", Signed: "{timestamp}{body}"})
		h := http.Header{"X-Time": {stamp}, "X-Sig": {base64.StdEncoding.EncodeToString(signature)}}
		benchmarkVerify(b, s, ring(b, signing.Key{Secret: public}), signing.Message{Header: h, Body: text[len(stamp):]})
	})
	b.Run("ecdsa/bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sum := sha256.Sum256(text)
			if !ecdsa.VerifyASN1(&private.PublicKey, sum[:], signature) {
				b.Fatal("it does not verify")
			}
		}
	})
}
