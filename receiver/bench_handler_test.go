package receiver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// benchWriter is what a connection is to a handler, without the connection.
type benchWriter struct {
	header http.Header
	status int
}

func (w *benchWriter) Header() http.Header             { return w.header }
func (w *benchWriter) WriteHeader(status int)          { w.status = status }
func (w *benchWriter) Write(p []byte) (int, error)     { return len(p), nil }
func (w *benchWriter) SetReadDeadline(time.Time) error { return nil }

// BenchmarkHandler compares the whole handler, without a database, with one that
// reads the same body within the same bound, hashes it, and answers.
func BenchmarkHandler(b *testing.B) {
	inTx := func(_ context.Context, fn func(struct{}) error) error { return fn(struct{}{}) }
	rcv := newReceiver(b, inTx, noDatabase{}, nil)
	handlers := []struct {
		name    string
		handler http.Handler
	}{
		{"bare", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			sum := sha256.Sum256(body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(sum[:])
		})},
		{"receiver", rcv.Handler(func(context.Context, struct{}, receiver.Event) error { return nil })},
	}
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10} {
		ev := newEvent(1)
		ev.Data = strings.Repeat("x", size-200)
		m := receivertest.NewSender(b, testSecret, nil).Request(ev).Message()
		for _, h := range handlers {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, h.name), func(b *testing.B) {
				b.ReportAllocs()
				body := bytes.NewReader(nil)
				r, err := http.NewRequest("POST", "/", io.NopCloser(body))
				require.NoError(b, err)
				r.Header, r.ContentLength = m.Header, int64(len(m.Body))
				whole := r.Body
				for b.Loop() {
					body.Reset(m.Body)
					r.Body = whole
					w := &benchWriter{header: make(http.Header)}
					h.handler.ServeHTTP(w, r)
					if w.status != 200 {
						b.Fatal(w.status)
					}
				}
			})
			b.Run(fmt.Sprintf("%dKiB/%s over a connection", size>>10, h.name), func(b *testing.B) {
				srv := httptest.NewServer(h.handler)
				defer srv.Close()
				for b.Loop() {
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
			})
		}
	}
}

// BenchmarkGroup compares 64 concurrent deliveries in transactions of their own with
// the same in shared ones.
func BenchmarkGroup(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		bed, _ := onSQLite(b)
		benchmarkGroup(b, bed, receiver.SQLExec, 1)
	})
	b.Run("postgres", func(b *testing.B) {
		benchmarkGroup[pgx.Tx](b, onPostgres(b, "read committed"), pgxExec, 4)
	})
}

func benchmarkGroup[Tx any](b *testing.B, bed bed[Tx], exec receiver.Exec[Tx], transactions int) {
	group, err := receiver.NewGroup(bed.inTx, exec, &receiver.GroupConfig{Transactions: transactions})
	require.NoError(b, err)
	for _, way := range []struct {
		name string
		inTx receiver.InTx[Tx]
	}{{"plain", bed.inTx}, {"group", group.InTx}} {
		b.Run(way.name, func(b *testing.B) {
			rcv := newReceiver(b, way.inTx, bed.store, nil)
			snd := receivertest.NewSender(b, testSecret, nil)
			messages := make([]signing.Message, b.N)
			for i := range messages {
				ev := newEvent(1)
				ev.Object.ID = ev.ID
				messages[i] = snd.Request(ev).Message()
			}
			var next atomic.Int64
			b.SetParallelism(32) // of two processors: 64
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if res, err := rcv.Receive(context.Background(), messages[next.Add(1)-1], bed.effect); err != nil || res != receiver.Applied {
						b.Error(res, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
