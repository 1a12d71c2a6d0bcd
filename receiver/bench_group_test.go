package receiver_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// BenchmarkGroup compares 64 concurrent deliveries in transactions of their own with the
// same deliveries in shared transactions. It also measures the effects alone, which shows
// how much sharing can gain. The PostgreSQL server waits for the disk. All ways take turns,
// and the figures are medians over the rounds.
func BenchmarkGroup(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		bed, _ := onSQLite(b)
		ways := groupWays(b, bed, bed.inTx, receiver.SQLExec, 1)
		benchmarkGroup(b, ways)
	})
	b.Run("postgres", func(b *testing.B) {
		pgtest.DSN(b) // skips where there is no server
		server, err := pgtest.Start(pgtest.Options{Durable: true, SharedBuffers: "256MB"})
		require.NoError(b, err)
		defer func() { require.NoError(b, server.Stop()) }()
		b.Setenv("SUREHOOK_TEST_POSTGRES", server.DSN())
		for _, transactions := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("transactions=%d", transactions), func(b *testing.B) {
				bed, pool := onPostgres(b, "read committed")
				ways := groupWays(b, bed, bed.inTx, pgxExec, transactions)
				later := groupWays[pgx.Tx](b, bed, postgres.InTx(pool, pgx.TxOptions{}), pgxExec, transactions)
				for name, way := range later {
					ways[name+"-later"] = way
				}
				benchmarkGroup(b, ways)
			})
		}
	})
}

// groupWays handles an event: with the effect alone, or with all of the receiver's work.
func groupWays[Tx any](b *testing.B, bed bed[Tx], inTx receiver.InTx[Tx], exec receiver.Exec[Tx], transactions int) map[string]func(m signing.Message, id string) error {
	group, err := receiver.NewGroup(inTx, exec, &receiver.GroupConfig{Transactions: transactions})
	require.NoError(b, err)
	ctx := context.Background()
	effect := func(inTx receiver.InTx[Tx]) func(signing.Message, string) error {
		return func(_ signing.Message, id string) error {
			return inTx(ctx, func(tx Tx) error { return bed.effect(ctx, tx, receiver.Event{ID: id}) })
		}
	}
	receive := func(inTx receiver.InTx[Tx]) func(signing.Message, string) error {
		rcv := newReceiver(b, inTx, bed.store, nil)
		return func(m signing.Message, _ string) error {
			res, err := rcv.Receive(ctx, m, receiver.State(bed.effect))
			if err == nil && res != receiver.Applied {
				err = fmt.Errorf("it is %s", res)
			}
			return err
		}
	}
	return map[string]func(m signing.Message, id string) error{
		"bare": effect(inTx), "bare-shared": effect(group.InTx), "receive": receive(inTx), "receive-shared": receive(group.InTx),
	}
}

func benchmarkGroup(b *testing.B, ways map[string]func(m signing.Message, id string) error) {
	const clients, each = 64, 8
	snd := receivertest.NewSender(b, testSecret, nil)
	taken := map[string][]float64{}
	made := 0
	for b.Loop() {
		for name, do := range ways {
			messages := make([]signing.Message, clients*each)
			for i := range messages {
				made++
				messages[i] = snd.Request(receivertest.NewEvent("subscriber", strconv.Itoa(made), 1)).Message()
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			for range clients {
				wg.Go(func() {
					for i := int(next.Add(1)) - 1; i < len(messages); i = int(next.Add(1)) - 1 {
						if err := do(messages[i], strconv.Itoa(made+i)); err != nil {
							b.Error(name, err)
							return
						}
					}
				})
			}
			wg.Wait()
			taken[name] = append(taken[name], time.Since(start).Seconds()/float64(len(messages)))
		}
	}
	median := func(name string) float64 {
		slices.Sort(taken[name])
		return taken[name][len(taken[name])/2]
	}
	b.ReportMetric(0, "ns/op") // a figure of all ways together says nothing
	for name := range ways {
		b.ReportMetric(1/median(name), name+"/s")
	}
}
