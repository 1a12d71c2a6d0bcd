package signing_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

var benchSizes = []struct {
	name string
	n    int
}{{"1KiB", 1 << 10}, {"64KiB", 64 << 10}}

// delivery is a signed request with the headers that come with one.
func delivery(tb testing.TB, scheme signing.Scheme, keys *signing.Keyring, size int) signing.Message {
	tb.Helper()
	m := signing.Message{
		Method: http.MethodPost,
		Header: http.Header{
			"Accept-Encoding": {"identity"},
			"Content-Length":  {fmt.Sprint(size)},
			"Content-Type":    {"application/json"},
			"User-Agent":      {"surehook/1"},
			"Webhook-Attempt": {"1"},
		},
		Body: bytes.Repeat([]byte{'x'}, size),
	}
	require.NoError(tb, scheme.Sign(m.Header, "evt_0123456789abcdefghijklmn", time.Now(), m.Body, keys))
	return m
}

func BenchmarkVerify(b *testing.B) {
	for _, scheme := range signing.DefaultSchemes() {
		for _, size := range benchSizes {
			b.Run(scheme.Name()+"/"+size.name, func(b *testing.B) {
				keys, err := signing.NewKeyring(signing.Key{Secret: signing.GenerateSecret()})
				require.NoError(b, err)
				m := delivery(b, scheme, keys, size.n)
				// The benchmark may run for longer than the default tolerance.
				v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Tolerance: time.Hour})
				require.NoError(b, err)
				b.SetBytes(int64(size.n))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Verify(m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkBareHMAC is what BenchmarkVerify is to be compared with: a pooled
// crypto/hmac over the bytes that timestamp-body signs, in one piece.
func BenchmarkBareHMAC(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			secret := []byte(signing.GenerateSecret().Reveal())
			pool := sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}
			message := append([]byte("1700000000."), bytes.Repeat([]byte{'x'}, size.n)...)
			sum := make([]byte, 0, sha256.Size)
			b.SetBytes(int64(size.n))
			b.ReportAllocs()
			for b.Loop() {
				mac := pool.Get().(hash.Hash)
				mac.Write(message)
				sum = mac.Sum(sum[:0])
				mac.Reset()
				pool.Put(mac)
			}
		})
	}
}

func BenchmarkSign(b *testing.B) {
	for _, scheme := range signing.DefaultSchemes() {
		for _, size := range benchSizes {
			b.Run(scheme.Name()+"/"+size.name, func(b *testing.B) {
				keys, err := signing.NewKeyring(signing.Key{Secret: signing.GenerateSecret()})
				require.NoError(b, err)
				m := delivery(b, scheme, keys, size.n)
				at := time.Now()
				b.SetBytes(int64(size.n))
				b.ReportAllocs()
				for b.Loop() {
					if err := scheme.Sign(m.Header, "evt_0123456789abcdefghijklmn", at, m.Body, keys); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkVerifyDescribed is for comparison with BenchmarkBareHMAC, too.
func BenchmarkVerifyDescribed(b *testing.B) {
	for _, scheme := range []signing.Scheme{signing.Stripe(), signing.GitHub(), signing.Slack()} {
		b.Run(scheme.Name()+"/1KiB", func(b *testing.B) {
			keys := ring(b, signing.Key{Secret: textSecret(b, secretA)})
			benchmarkVerify(b, scheme, keys, delivery(b, scheme, keys, 1<<10))
		})
	}
}

func benchmarkVerify(b *testing.B, scheme signing.Scheme, keys *signing.Keyring, m signing.Message) {
	b.Helper()
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Tolerance: time.Hour, Deduplicated: true})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(m); err != nil {
			b.Fatal(err)
		}
	}
}
