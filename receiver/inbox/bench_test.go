package inbox_test

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// The benchmark measures how long requests wait on SQLite while workers apply a backlog. It
// compares transactions that poll for the write lock with those that take turns.
func BenchmarkRequestsBesideWorkers(b *testing.B) {
	const clients, backlog = 8, 2000
	for name, begun := range map[string]func(*sql.DB) receiver.InTx[*sql.Tx]{
		"polling": func(db *sql.DB) receiver.InTx[*sql.Tx] { return receiver.SQL(db, nil) },
		"turns":   func(db *sql.DB) receiver.InTx[*sql.Tx] { return dedupSQLite.InTx(db) },
	} {
		b.Run(name, func(b *testing.B) {
			base := onSQLite(b)
			inTx := begun(base.db)
			secret := signing.GenerateSecret()
			keys, err := signing.NewKeyring(signing.Key{Secret: secret})
			require.NoError(b, err)
			verifier, err := signing.NewVerifier(keys, nil)
			require.NoError(b, err)
			rcv, err := receiver.New(verifier, inTx, base.dedup, "bench", &receiver.Config{Logger: quiet})
			require.NoError(b, err)
			in, err := inbox.New(rcv, inTx, base.store, receiver.Fact(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
				for range 20 {
					if err := base.effect(ctx, tx, ev); err != nil {
						return err
					}
				}
				return nil
			}), &inbox.Config{Logger: quiet})
			require.NoError(b, err)
			sender, handler := receivertest.NewSender(b, secret, nil), in.Handler()
			post := func(n int) (took []time.Duration) {
				var mu sync.Mutex
				var wg sync.WaitGroup
				for client := range clients {
					wg.Go(func() {
						for i := client; i < n; i += clients {
							ev := receivertest.NewEvent("thing", receivertest.NewEvent("thing", "a", 1).ID, 1)
							begin := time.Now()
							answer := sender.Request(ev).Serve(handler)
							d := time.Since(begin)
							mu.Lock()
							took = append(took, d)
							mu.Unlock()
							if answer.Status != 200 {
								b.Errorf("%d after %s: %s", answer.Status, d, answer.Body)
							}
						}
					})
				}
				wg.Wait()
				slices.Sort(took)
				return took
			}
			post(backlog)
			ctx, cancel := context.WithCancel(b.Context())
			ran := make(chan error, 1)
			go func() { ran <- in.Run(ctx) }()
			b.ResetTimer()
			took := post(b.N)
			b.StopTimer()
			cancel()
			require.NoError(b, <-ran)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
		})
	}
}
