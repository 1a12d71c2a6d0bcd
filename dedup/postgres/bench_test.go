package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// BenchmarkReceive compares a receiver's work (verify, begin, mark, advance, effect,
// commit) with a bare transaction of the same effect, on a server that waits for the disk.
// Both take turns, so that other work of the machine affects both. The figures are medians
// over the rounds.
func BenchmarkReceive(b *testing.B) {
	pgtest.DSN(b) // skips where there is no server
	server, err := pgtest.Start(pgtest.Options{Durable: true, SharedBuffers: "256MB"})
	require.NoError(b, err)
	defer func() { require.NoError(b, server.Stop()) }()
	b.Setenv("SUREHOOK_TEST_POSTGRES", server.DSN())
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchmarkReceive(b, clients) })
	}
}

func benchmarkReceive(b *testing.B, clients int) {
	const each = 25 // operations of a client in a round
	bed := newBed(b)
	ctx, inTx := context.Background(), inPgx(bed.pool)
	snd := receivertest.NewSender(b, bed.secret, nil)
	var made int
	var messages []signing.Message
	receive := func(rcv *receiver.Receiver[pgx.Tx]) func(i int) error {
		return func(i int) error {
			res, err := rcv.Receive(ctx, messages[i], receiver.State(bed.effect))
			if err == nil && res != receiver.Applied {
				err = fmt.Errorf("it is %s", res)
			}
			return err
		}
	}
	kinds := []struct {
		name string
		do   func(i int) error
	}{
		{"bare", func(i int) error {
			return inTx(ctx, func(tx pgx.Tx) error { return bed.effect(ctx, tx, receiver.Event{ID: strconv.Itoa(i)}) })
		}},
		{"receive", receive(bed.receiver(b, inTx, bed.store))},
		{"begun-with-the-marker", receive(bed.receiver(b, postgres.InTx(bed.pool, pgx.TxOptions{}), bed.store))},
		{"in-two-steps", receive(bed.receiver(b, inTx, steps{bed.store}))},
	}
	taken := make([][]float64, len(kinds))
	for b.Loop() {
		for k, kind := range kinds {
			b.StopTimer()
			messages = messages[:0]
			for range clients * each {
				made++
				ev := receivertest.NewEvent("subscriber", strconv.Itoa(made%1000), int64(made))
				ev.Data = strings.Repeat("x", 1024-200)
				messages = append(messages, snd.Request(ev).Message())
			}
			b.StartTimer()
			start := time.Now()
			atOnce(b, clients, len(messages), kind.do)
			taken[k] = append(taken[k], time.Since(start).Seconds())
		}
	}
	median := func(k int) float64 {
		slices.Sort(taken[k])
		return taken[k][len(taken[k])/2] / float64(clients*each)
	}
	b.ReportMetric(0, "ns/op") // a figure of three kinds together says nothing
	for k, kind := range kinds {
		b.ReportMetric(1/median(k), kind.name+"/s")
		if k > 0 {
			b.ReportMetric(median(0)/median(k), kind.name+":bare")
		}
	}
}

// atOnce does all n operations. Each client does one at a time.
func atOnce(b *testing.B, clients, n int, do func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for errs[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[c] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(b, err)
	}
}

// steps hides that the store has dedup.MarkAdvancer.
type steps struct{ dedup.Store[pgx.Tx] }
