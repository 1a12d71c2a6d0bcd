package schemebench_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-github/v90/github"
	"github.com/slack-go/slack"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v86/webhook"
	svix "github.com/svix/svix-webhooks/go"

	"github.com/surehook/surehook/signing"
)

const (
	eventID = "evt_0123456789abcdefghijklmn"
	text    = "0123456789abcdef0123456789abcdef"
)

// tolerance is wide if it can be chosen: a benchmark runs for longer than a signature
// is valid. Libraries that allow no choice do not check the time here, which is to
// their advantage.
const tolerance = time.Hour

var sizes = []struct {
	name string
	n    int
}{{"1KiB", 1 << 10}, {"64KiB", 64 << 10}}

// entry is one way to verify signatures by a scheme and a secret.
type entry struct {
	scheme signing.Scheme
	secret string
	peer   string
	verify func(h http.Header, body []byte) func() error
}

func entries(b *testing.B) []entry {
	whsec := "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
	return []entry{
		{signing.Stripe(), text, "stripe-go", func(h http.Header, body []byte) func() error {
			value := h.Get("Stripe-Signature")
			return func() error { return webhook.ValidatePayloadWithTolerance(body, value, text, tolerance) }
		}},
		{signing.GitHub(), text, "go-github", func(h http.Header, body []byte) func() error {
			value, key := h.Get("X-Hub-Signature-256"), []byte(text)
			return func() error { return github.ValidateSignature(value, body, key) }
		}},
		// Its five minutes are fixed, so it gets a message that was signed just before.
		{signing.Slack(), text, "slack-go", func(h http.Header, body []byte) func() error {
			return func() error {
				v, err := slack.NewSecretsVerifier(h, text)
				if err != nil {
					return err
				}
				if _, err := v.Write(body); err != nil {
					return err
				}
				return v.Ensure()
			}
		}},
		{signing.StandardWebhooks{}, whsec, "standard-webhooks", func(h http.Header, body []byte) func() error {
			w, err := standardwebhooks.NewWebhook(whsec)
			must(b, err)
			return func() error { return w.VerifyIgnoringTimestamp(body, h) }
		}},
		{signing.Svix(), whsec, "svix", func(h http.Header, body []byte) func() error {
			w, err := svix.NewWebhook(whsec)
			must(b, err)
			return func() error { return w.VerifyIgnoringTimestamp(body, h) }
		}},
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, e := range entries(b) {
		for _, size := range sizes {
			m := signing.Message{
				Method: http.MethodPost,
				Header: http.Header{
					"Accept-Encoding": {"gzip"},
					"Content-Length":  {fmt.Sprint(size.n)},
					"Content-Type":    {"application/json"},
					"User-Agent":      {"sender/1"},
				},
				Body: bytes.Repeat([]byte{'x'}, size.n),
			}
			secret, err := signing.ParseTextSecret(e.secret)
			if _, standard := e.scheme.(signing.StandardWebhooks); standard {
				secret, err = signing.ParseSecret(e.secret)
			}
			must(b, err)
			keys, err := signing.NewKeyring(signing.Key{Secret: secret})
			must(b, err)
			must(b, e.scheme.Sign(m.Header, eventID, time.Now(), m.Body, keys))
			verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{e.scheme}, Tolerance: tolerance, Deduplicated: true})
			must(b, err)

			name := e.scheme.Name() + "/" + size.name
			run(b, name+"/surehook", size.n, func() error {
				_, err := verifier.Verify(m)
				return err
			})
			must(b, e.scheme.Sign(m.Header, eventID, time.Now(), m.Body, keys))
			run(b, name+"/"+e.peer, size.n, e.verify(m.Header, m.Body))
		}
	}
}

// BenchmarkSHA256 is the lower bound for all ways to verify.
func BenchmarkSHA256(b *testing.B) {
	for _, size := range sizes {
		body := bytes.Repeat([]byte{'x'}, size.n)
		run(b, size.name, size.n, func() error {
			sum = sha256.Sum256(body)
			return nil
		})
	}
}

var sum [sha256.Size]byte

func run(b *testing.B, name string, size int, verify func() error) {
	b.Run(name, func(b *testing.B) {
		must(b, verify())
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			if err := verify(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
