package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/cputime"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

const (
	batchSize = 200
	bodySize  = 1 << 10
)

// cycle expands, records the deliveries claimed before, and claims.
func cycle(s *sqlite.Store, claimed []dispatch.Claimed) ([]dispatch.Claimed, error) {
	_, c, err := s.Step(context.Background(), dispatch.ExpandParams{Events: 256, Deliveries: 1000}, batchOf(claimed, batchSize))
	return c.Claimed, err
}

type cycles struct{ subscriptions, backlog, parked int }

// BenchmarkCycle takes a batch of 200 deliveries through expand, claim and record,
// beside a backlog of other due ones.
func BenchmarkCycle(b *testing.B) {
	for _, c := range []cycles{{1, 10_000, 0}, {10, 10_000, 0}, {1000, 10_000, 0}} {
		c.run(b)
	}
}

// BenchmarkCycleOfMillion is BenchmarkCycle beside a million deliveries that are due,
// or that wait for a retry. To fill the tables takes much longer than the cycles.
func BenchmarkCycleOfMillion(b *testing.B) {
	for _, c := range []cycles{{10, 1_000_000, 0}, {10, 10_000, 1_000_000}} {
		c.run(b)
	}
}

func (c cycles) run(b *testing.B) {
	b.Run(fmt.Sprintf("subscriptions=%d,backlog=%d,parked=%d", c.subscriptions, c.backlog, c.parked), func(b *testing.B) {
		s := newStore(b, open(b, path(b), fit), time.Now)
		owners := register(b, s, c.subscriptions)
		park(b, s, owners, c.parked)
		publish(b, s, c.backlog, bodySize, owners)
		expandAll(b, s)
		var claimed []dispatch.Claimed
		var err error
		for range 10 { // new subscriptions become proven ones
			claimed, err = cycle(s, claimed)
			require.NoError(b, err)
		}
		var used, took time.Duration
		done := 0
		b.ResetTimer()
		for range b.N {
			b.StopTimer()
			publish(b, s, batchSize, bodySize, owners)
			b.StartTimer()
			startCPU, start := cputime.Used(), time.Now()
			done += len(claimed)
			claimed, err = cycle(s, claimed)
			require.NoError(b, err)
			used, took = used+cputime.Used()-startCPU, took+time.Since(start)
		}
		b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(done), "cpu-µs/delivery")
		b.ReportMetric(float64(took.Nanoseconds())/1e3/float64(done), "µs/delivery")
		b.ReportMetric(float64(done)/took.Seconds(), "deliveries/s")
		b.ReportMetric(float64(done)/float64(b.N), "batch")
		b.ReportMetric(0, "ns/op")
	})
}

// park makes n deliveries that wait for a retry in a week.
func park(t testing.TB, s *sqlite.Store, owners []string, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	publish(t, s, n, 100, owners)
	expandAll(t, s)
	b := dispatch.Batch{Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(7 * 24 * time.Hour), Health: h}
	}}
	b.Claim.Lease = time.Minute
	b.Claim.Lanes[0] = dispatch.LaneParams{Slots: 1000, PerSubscriber: 1000, PerSubscription: 1000}
	for n > 0 {
		_, c, err := s.Step(context.Background(), dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		n -= len(b.Results)
		b.Results = b.Results[:0]
		for _, d := range c.Claimed {
			b.Results = append(b.Results, dispatch.Result{Key: d.Key, Token: d.Token, Number: d.Number, StartedAt: d.At, Class: sender.ClassConnect})
		}
	}
}

// BenchmarkPublish measures a business change with an event, and one with a plain
// insert of the same bytes.
func BenchmarkPublish(b *testing.B) {
	ctx := context.Background()
	change := func(tx *sql.Tx, i int) error {
		_, err := tx.ExecContext(ctx, `UPDATE business SET n = n + 1 WHERE id = ?`, i%1000)
		return err
	}
	for _, c := range []struct {
		name string
		with func(s *sqlite.Store, tx *sql.Tx, i int) error
	}{
		{"plain insert", func(_ *sqlite.Store, tx *sql.Tx, i int) error {
			d := draft("", bodySize)
			_, err := tx.ExecContext(ctx, `INSERT INTO plain (id, type, body) VALUES (?, ?, ?)`, d.ID, d.Type, d.Body(1))
			return err
		}},
		{"event", func(s *sqlite.Store, tx *sql.Tx, i int) error {
			d := draft("", bodySize)
			d.Object.ID = strconv.Itoa(i % 1000)
			_, err := s.PublishTx(ctx, tx, []sender.Draft{d})
			return err
		}},
		{"event to a subscriber, with a key", func(s *sqlite.Store, tx *sql.Tx, i int) error {
			d := draft("sub_0", bodySize)
			d.Object.ID, d.Key = strconv.Itoa(i%1000), d.ID
			_, err := s.PublishTx(ctx, tx, []sender.Draft{d})
			return err
		}},
	} {
		for _, in := range []string{"InTx", "BeginTx"} {
			b.Run(c.name+"/"+in, func(b *testing.B) {
				db := open(b, path(b), fit+"&_txlock=immediate")
				s := newStore(b, db, time.Now)
				register(b, s, 1)
				_, err := db.ExecContext(ctx, `CREATE TABLE business (id INTEGER PRIMARY KEY, n INTEGER);
					CREATE TABLE plain (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, type TEXT, body BLOB);
					WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 999) INSERT INTO business SELECT i, 0 FROM r`)
				require.NoError(b, err)
				start := cputime.Used()
				b.ResetTimer()
				for i := range b.N {
					run := func(tx *sql.Tx) error {
						if err := change(tx, i); err != nil {
							return err
						}
						return c.with(s, tx, i)
					}
					if in == "InTx" {
						require.NoError(b, s.InTx(ctx, run))
						continue
					}
					tx, err := db.BeginTx(ctx, nil)
					require.NoError(b, err)
					require.NoError(b, run(tx))
					require.NoError(b, tx.Commit())
				}
				b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// BenchmarkAppCommitsWhileDraining measures the application's own commits while a
// backlog drains in the same process.
func BenchmarkAppCommitsWhileDraining(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		draining bool
		inTx     bool
	}{{"idle,InTx", false, true}, {"draining,InTx", true, true}, {"draining,outside", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			db := open(b, path(b), fit+"&_txlock=immediate")
			s := newStore(b, db, time.Now)
			owners := register(b, s, 10)
			_, err := db.ExecContext(ctx, `CREATE TABLE business (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO business VALUES (1, 0)`)
			require.NoError(b, err)
			publish(b, s, 20_000, bodySize, owners)
			stop := make(chan struct{})
			var drained int
			var g errgroup.Group
			if c.draining {
				g.Go(func() (err error) {
					drained, err = drain(ctx, s, owners, stop)
					return err
				})
			}
			var took []time.Duration
			start := time.Now()
			b.ResetTimer()
			for range b.N {
				began := time.Now()
				if c.inTx {
					err = s.InTx(ctx, func(tx *sql.Tx) error {
						_, err := tx.ExecContext(ctx, `UPDATE business SET n = n + 1`)
						return err
					})
				} else {
					_, err = db.ExecContext(ctx, `UPDATE business SET n = n + 1`)
				}
				took = append(took, time.Since(began))
				require.NoError(b, err)
				time.Sleep(500 * time.Microsecond) // an application has other work, too
			}
			b.StopTimer()
			elapsed := time.Since(start)
			close(stop)
			require.NoError(b, g.Wait())
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
			b.ReportMetric(float64(drained)/elapsed.Seconds(), "deliveries/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// drain delivers until it is stopped, and publishes more when the backlog is empty.
func drain(ctx context.Context, s *sqlite.Store, owners []string, stop <-chan struct{}) (done int, err error) {
	var claimed []dispatch.Claimed
	for {
		select {
		case <-stop:
			return done, nil
		default:
		}
		done += len(claimed)
		if claimed, err = cycle(s, claimed); err != nil {
			return done, err
		}
		if len(claimed) > 0 {
			continue
		}
		more := make([]sender.Draft, 1000)
		for i := range more {
			more[i] = draft(owners[i%len(owners)], bodySize)
		}
		if err := publishInTx(ctx, s, more...); err != nil {
			return done, err
		}
	}
}
