package sqlite_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/sqlite"
)

// orphans are rows that refer to a removed event.
const orphans = `SELECT count(*) FROM (
	SELECT event FROM surehook_pending UNION ALL SELECT event FROM surehook_leases UNION ALL SELECT event FROM surehook_waiting
	UNION ALL SELECT event FROM surehook_lines
	UNION ALL SELECT event FROM surehook_ended UNION ALL SELECT event FROM surehook_attempts UNION ALL SELECT event FROM surehook_keys
) WHERE event NOT IN (SELECT seq FROM surehook_events)`

// lost are deliveries that were sent and have lost their attempts.
const lost = `SELECT count(*) FROM surehook_waiting w WHERE number > 0
	AND NOT EXISTS (SELECT 1 FROM surehook_attempts a WHERE a.event = w.event AND a.subscription = w.subscription)`

// pruneAll makes a whole pass.
func pruneAll(ctx context.Context, s *sqlite.Store, before time.Time, limit int) (sum dispatch.Pruned, err error) {
	p := dispatch.PruneParams{Delivered: before, DeadLetters: before, Events: before, Notices: before, Limit: limit}
	for {
		got, err := s.Prune(ctx, p)
		if err != nil {
			return sum, err
		}
		sum.Deliveries += got.Deliveries
		sum.DeadLetters += got.DeadLetters
		sum.Events += got.Events
		if got.Cursor == "" {
			return sum, nil
		}
		p.Cursor = got.Cursor
	}
}

// All operations run at once. Nothing remains of pruned records, no live delivery is
// lost, and the tables are empty in the end.
func TestPruneBesideEverything(t *testing.T) {
	ctx := t.Context()
	clock := newClock()
	db := open(t, path(t), fit)
	s := newStore(t, db, clock.now)
	owners := register(t, s, 4)
	rounds := 60
	if race.Enabled { // it makes SQLite many times slower
		rounds = 20
	}
	var ids []string // of deliveries that were claimed
	var mu sync.Mutex
	var g errgroup.Group
	g.Go(func() error {
		for range rounds {
			drafts := make([]sender.Draft, 5)
			for i := range drafts {
				drafts[i] = draft(owners[i%len(owners)], 100)
				drafts[i].Key = drafts[i].ID
			}
			if err := publishInTx(ctx, s, drafts...); err != nil {
				return err
			}
			clock.advance(time.Second)
		}
		return nil
	})
	g.Go(func() error {
		var claimed []dispatch.Claimed
		for range rounds {
			if _, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{}); err != nil {
				return err
			}
			b := batchOf(claimed, 20)
			for i := range b.Results {
				if i%5 == 0 {
					b.Results[i].Class = sender.ClassStatus
				}
			}
			_, c, err := s.Step(ctx, dispatch.ExpandParams{}, b)
			if err != nil {
				return err
			}
			claimed = c.Claimed
			mu.Lock()
			for _, d := range claimed {
				ids = append(ids, "dlv_"+d.Event.ID[len("evt_"):]+"_"+strconv.FormatInt(d.Key.Subscription, 36))
			}
			mu.Unlock()
		}
		return nil
	})
	g.Go(func() error {
		for i := range 4 * rounds {
			mu.Lock()
			id := ""
			if len(ids) > 0 {
				id = ids[rand.IntN(len(ids))]
			}
			mu.Unlock()
			if err := s.Redeliver(ctx, id, time.Time{}); err != nil && !errors.Is(err, sender.ErrNotFound) && !errors.Is(err, sender.ErrRedacted) && !errors.Is(err, sender.ErrCancelled) {
				return err
			}
			if i%40 == 39 {
				if _, err := s.Redact(ctx, history.RedactParams{Subscriber: owners[0], Limit: 10}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for range 2 {
		g.Go(func() error {
			for range rounds {
				if _, err := pruneAll(ctx, s, clock.now().Add(-3*time.Second), 4); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Zero(t, count(t, db, orphans))
	require.Zero(t, count(t, db, lost))

	var claimed []dispatch.Claimed
	for {
		expandAll(t, s)
		clock.advance(24 * time.Hour)
		_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(claimed, 100))
		require.NoError(t, err)
		claimed = c.Claimed
		if len(claimed) == 0 {
			break
		}
		for _, d := range claimed {
			require.NotEmpty(t, d.Body)
		}
	}
	clock.advance(time.Second)
	_, err := pruneAll(ctx, s, clock.now(), 50)
	require.NoError(t, err)
	for _, table := range []string{"events", "keys", "pending", "leases", "waiting", "ended", "attempts"} {
		require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_`+table), table)
	}
	require.Zero(t, count(t, db, `SELECT sum(abs(pending) + abs(waiting) + abs(leased) + abs(dead)) FROM surehook_heads`))
	require.Zero(t, count(t, db, `SELECT abs(live) + abs(held) + abs(dead) FROM surehook_counts`))
	before := count(t, db, `SELECT seq FROM sqlite_sequence WHERE name = 'surehook_events'`)
	publish(t, s, 1, 100, owners)
	require.Equal(t, before+1, count(t, db, `SELECT max(seq) FROM surehook_events`), "a number was used again")
}

// A kind of record of which a row cannot be removed keeps no other: each pass goes on with
// the kinds behind it, and tells of it.
func TestPruneGoesOnBesideWhatFails(t *testing.T) {
	kinds := map[string]string{"notices": "notices", "rollups": "figures", "subscription_rollups": "figures of subscriptions"}
	for broken, says := range kinds {
		clock := newClock()
		db := open(t, path(t), fit)
		s := newStore(t, db, clock.now)
		_, err := db.Exec(`INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notified_at, notify_due, notify_tries)
				VALUES ('ntc_1', 'subscription.failing', '', '', '', '', '', 50, 1, 1, 1, 1, 1);
			INSERT INTO surehook_rollups VALUES (1, 1, '{}');
			INSERT INTO surehook_subscription_rollups VALUES (1, 1, 1, '{}');
			CREATE TRIGGER damaged BEFORE DELETE ON surehook_` + broken + ` BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END`)
		require.NoError(t, err)
		p := dispatch.PruneParams{Notices: clock.now(), Rollups: clock.now(), SubscriptionRollups: clock.now(), Limit: 10}
		for failures := 0; ; {
			got, err := s.Prune(t.Context(), p)
			if err != nil {
				require.ErrorContains(t, err, "sqlite: pruning: "+says+": ")
				require.ErrorContains(t, err, "broken on purpose")
				failures++
			}
			if p.Cursor = got.Cursor; p.Cursor == "" {
				require.Equal(t, 1, failures, broken)
				break
			}
		}
		for kind := range kinds {
			left := 0
			if kind == broken {
				left = 1
			}
			require.Equal(t, left, count(t, db, `SELECT count(*) FROM surehook_`+kind), "%s, while %s cannot be removed", kind, broken)
		}
	}
}

// BenchmarkPruneBesidePublishing measures a publish alone, and while 200,000 events are
// pruned. It also measures the batches of the pruning, with their wait for a turn to
// write.
func BenchmarkPruneBesidePublishing(b *testing.B) {
	const old, batch = 200_000, 100
	ctx := context.Background()
	for range b.N {
		db := open(b, path(b), fit+"&_txlock=immediate")
		clock := newClock()
		s := newStore(b, db, clock.now)
		owners := register(b, s, 100)
		publish(b, s, old, bodySize, owners)
		expandAll(b, s)
		_, err := db.ExecContext(ctx, `INSERT INTO surehook_attempts SELECT event, subscription, 1, due, 1000, 204, '', '', NULL, 0 FROM surehook_pending;
			DELETE FROM surehook_pending; UPDATE surehook_heads SET pending = 0; UPDATE surehook_counts SET live = 0`)
		require.NoError(b, err)
		clock.advance(1000 * time.Hour)
		measure := func(done <-chan struct{}, atLeast int) (took []time.Duration) {
			for n := 0; ; n++ {
				select {
				case <-done:
					return took
				default:
				}
				if done == nil && n == atLeast {
					return took
				}
				began := time.Now()
				require.NoError(b, publishInTx(ctx, s, draft(owners[0], bodySize)))
				took = append(took, time.Since(began))
				time.Sleep(time.Millisecond)
			}
		}
		alone := measure(nil, 1000)
		done := make(chan struct{})
		var batches []time.Duration
		var pruned int
		began := time.Now()
		go func() {
			defer close(done)
			p := dispatch.PruneParams{Delivered: clock.now().Add(-time.Hour), Events: clock.now().Add(-time.Hour), Limit: batch}
			for {
				start := time.Now()
				got, err := s.Prune(ctx, p)
				if err != nil {
					b.Error(err)
					return
				}
				took := time.Since(start)
				batches = append(batches, took)
				pruned += got.Events
				if p.Cursor = got.Cursor; p.Cursor == "" {
					return
				}
				time.Sleep(4 * took) // as a dispatcher does
			}
		}()
		beside := measure(done, 0)
		elapsed := time.Since(began)
		require.Equal(b, old, pruned)
		slices.Sort(alone)
		slices.Sort(beside)
		slices.Sort(batches)
		p99, p99Beside := alone[len(alone)*99/100], beside[len(beside)*99/100]
		b.ReportMetric(p99.Seconds()*1e3, "p99-alone-ms")
		b.ReportMetric(p99Beside.Seconds()*1e3, "p99-beside-ms")
		b.ReportMetric(p99Beside.Seconds()/p99.Seconds(), "p99-ratio")
		b.ReportMetric(batches[len(batches)/2].Seconds()*1e3, "p50-batch-ms")
		b.ReportMetric(batches[len(batches)-1].Seconds()*1e3, "longest-batch-ms")
		b.ReportMetric(float64(pruned)/elapsed.Seconds(), "events/s")
		b.ReportMetric(0, "ns/op")
	}
}

// Events that were published while the clock was years ahead stay, and become the oldest. Those
// published after it was set back go when it is their time.
func TestPruneAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	const month, years = 31 * 24 * time.Hour, 4 * 365 * 24 * time.Hour
	clock := newClock()
	s := newStore(t, open(t, path(t), fit), clock.now)
	pruned := func() int {
		expandAll(t, s)
		done, err := pruneAll(t.Context(), s, clock.now().Add(-month+time.Hour), 100)
		require.NoError(t, err)
		return done.Events
	}
	nobody := []string{""}
	publish(t, s, 200, 0, nobody)
	clock.advance(years)
	publish(t, s, 3, 0, nobody)
	clock.advance(-years)
	publish(t, s, 97, 0, nobody)
	clock.advance(month)
	publish(t, s, 50, 0, nobody)
	require.Equal(t, 297, pruned())
	clock.advance(month)
	publish(t, s, 30, 0, nobody)
	require.Equal(t, 50, pruned())
}
