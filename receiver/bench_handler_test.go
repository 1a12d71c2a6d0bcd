package receiver_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// benchWriter stands for the connection of a handler, without a connection.
type benchWriter struct {
	header http.Header
	status int
}

func (w *benchWriter) Header() http.Header             { return w.header }
func (w *benchWriter) WriteHeader(status int)          { w.status = status }
func (w *benchWriter) Write(p []byte) (int, error)     { return len(p), nil }
func (w *benchWriter) SetReadDeadline(time.Time) error { return nil }

// BenchmarkHandler compares the whole handler, without a database, with the least work that
// a handler for signed webhooks can do: see bareHandler. Both take turns, so that other
// work of the machine affects both. The figures are medians over the rounds. In process
// there is no server around them; over a connection the server's work is the same for both.
func BenchmarkHandler(b *testing.B) {
	inTx := func(_ context.Context, fn func(struct{}) error) error { return fn(struct{}{}) }
	rcv := newReceiver(b, inTx, noDatabase{}, nil)
	handlers := []http.Handler{
		bareHandler(testSecret),
		rcv.Handler(receiver.State(func(context.Context, struct{}, receiver.Event) error { return nil })),
	}
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10} {
		ev := newEvent(1)
		ev.Data = strings.Repeat("x", size-200)
		m := receivertest.NewSender(b, testSecret, nil).Request(ev).Message()
		b.Run(fmt.Sprintf("%dKiB/in process", size>>10), func(b *testing.B) {
			takeTurns(b, 50, inProcess(b, handlers[0], m), inProcess(b, handlers[1], m))
		})
		b.Run(fmt.Sprintf("%dKiB/over a connection", size>>10), func(b *testing.B) {
			takeTurns(b, 20, overConnection(b, handlers[0], m), overConnection(b, handlers[1], m))
		})
	}
}

// bareHandler reads the body within a bound, computes the HMAC-SHA256 over the timestamp
// and the body, compares it in constant time, and gives the receiver's answer. It looks
// neither at the time nor at the content of the body.
func bareHandler(secret signing.Secret) http.Handler {
	key := []byte(secret.Reveal())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, r.Header.Get("Webhook-Timestamp")+".")
		_, _ = mac.Write(body)
		sum, err := hex.DecodeString(r.Header.Get("Webhook-Hmac-Sha256"))
		if err != nil || !hmac.Equal(sum, mac.Sum(nil)) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{"result":"applied"}`)
	})
}

// inProcess returns a function that serves the message once.
func inProcess(b *testing.B, h http.Handler, m signing.Message) func() {
	body := bytes.NewReader(nil)
	r, err := http.NewRequest("POST", "/", io.NopCloser(body))
	require.NoError(b, err)
	r.Header, r.ContentLength = m.Header, int64(len(m.Body))
	whole := r.Body
	return func() {
		body.Reset(m.Body)
		r.Body = whole
		w := &benchWriter{header: make(http.Header)}
		h.ServeHTTP(w, r)
		if w.status != 200 {
			b.Fatal(w.status)
		}
	}
}

// overConnection is like inProcess, over a connection that is kept alive.
func overConnection(b *testing.B, h http.Handler, m signing.Message) func() {
	srv := httptest.NewServer(h)
	b.Cleanup(srv.Close)
	return func() {
		r, err := http.NewRequest("POST", srv.URL, bytes.NewReader(m.Body))
		require.NoError(b, err)
		r.Header = m.Header
		res, err := srv.Client().Do(r)
		require.NoError(b, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			b.Fatal(res.StatusCode)
		}
	}
}

// takeTurns runs each function a number of times in each round, and reports the medians.
func takeTurns(b *testing.B, times int, bare, receiver func()) {
	var took [2][]float64
	for b.Loop() {
		for i, do := range []func(){bare, receiver} {
			start := time.Now()
			for range times {
				do()
			}
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/float64(times))
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return took[i][len(took[i])/2]
	}
	b.ReportMetric(0, "ns/op") // a figure of both together says nothing
	b.ReportMetric(median(0), "bare-ns")
	b.ReportMetric(median(1), "receiver-ns")
	b.ReportMetric(median(1)/median(0), "receiver:bare")
}
