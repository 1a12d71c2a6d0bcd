package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

const (
	// orphans are rows that refer to a removed event.
	orphans = `SELECT count(*) FROM (
		SELECT event FROM surehook_pending UNION ALL SELECT event FROM surehook_leases UNION ALL SELECT event FROM surehook_waiting
		UNION ALL SELECT event FROM surehook_ended UNION ALL SELECT event FROM surehook_attempts) x WHERE event NOT IN (SELECT position FROM surehook_feed)`
	orphanKeys   = `SELECT count(*) FROM surehook_keys WHERE event NOT IN (SELECT id FROM surehook_events)`
	orphanPlaces = `SELECT count(*) FROM surehook_feed WHERE event NOT IN (SELECT no FROM surehook_events)`
	// lost are deliveries that were sent and have lost their attempts.
	lost = `SELECT count(*) FROM surehook_waiting w WHERE number > 0
		AND NOT EXISTS (SELECT 1 FROM surehook_attempts a WHERE a.event = w.event AND a.subscription = w.subscription)`
)

// pruneAll makes a whole pass.
func (f *forgetting) pruneAll(before time.Time, limit int) error {
	p := dispatch.PruneParams{Delivered: before, DeadLetters: before, Events: before, Notices: before, Rollups: before, Limit: limit}
	for {
		got, err := f.Prune(f.Context(), p)
		if err != nil || got.Cursor == "" {
			return err
		}
		p.Cursor = got.Cursor
	}
}

// A kind of record of which a row cannot be removed keeps no other: each pass goes on with
// the kinds behind it, and tells of it.
func TestPruneGoesOnBesideWhatFails(t *testing.T) {
	kinds := map[string]string{"notices": "notices", "rollups": "figures", "subscription_rollups": "figures of subscriptions"}
	place := newPlace(t)
	s := place.store(t)
	place.exec(t, `CREATE FUNCTION {}.damaged() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'broken on purpose'; END$$`)
	for broken, says := range kinds {
		place.exec(t, `DELETE FROM {}.surehook_notices; DELETE FROM {}.surehook_rollups; DELETE FROM {}.surehook_subscription_rollups;
			INSERT INTO {}.surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notify_due)
				VALUES ('ntc_1', 'subscription.failing', '', '', '', '', '', 50, '2001-01-01', '2001-01-01', '2001-01-01');
			INSERT INTO {}.surehook_rollups VALUES ('2001-01-01', 1, '{}');
			INSERT INTO {}.surehook_subscription_rollups VALUES (1, '2001-01-01', 1, '{}');
			CREATE TRIGGER damaged BEFORE DELETE ON {}.surehook_`+broken+` FOR EACH ROW EXECUTE FUNCTION {}.damaged()`)
		now := time.Now()
		p := dispatch.PruneParams{Notices: now, Rollups: now, SubscriptionRollups: now, Limit: 10}
		for failures := 0; ; {
			got, err := s.Prune(t.Context(), p)
			if err != nil {
				require.ErrorContains(t, err, "pruning: "+says+": ")
				require.ErrorContains(t, err, "broken on purpose")
				failures++
			}
			if p.Cursor = got.Cursor; p.Cursor == "" {
				require.Equal(t, 1, failures, broken)
				break
			}
		}
		for kind := range kinds {
			require.Equal(t, kind == broken, place.count(t, `SELECT count(*) FROM {}.surehook_`+kind) == 1, "%s, while %s cannot be removed", kind, broken)
		}
		place.exec(t, `DROP TRIGGER damaged ON {}.surehook_`+broken)
	}
	place.exec(t, `DROP FUNCTION {}.damaged()`)
}

// Forgetting an object waits for no transaction that publishes about it. Whether that
// commits decides whether the object is forgotten.
func TestForgettingBesideAPublish(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	about := func(id string) sender.Draft {
		d := draft("")
		d.Object.ID = id
		return d
	}
	require.NoError(t, publishInTx(t.Context(), s, about("free"), about("published"), about("rolled back")))
	expandAll(t, s)
	forget := func() int {
		t.Helper()
		p.advance(t, time.Hour)
		now := time.Time{}
		require.NoError(t, p.pool.QueryRow(t.Context(), `SELECT `+clockOf(p.schema)).Scan(&now))
		got, err := s.Prune(t.Context(), dispatch.PruneParams{Events: now, Objects: now, Limit: 10})
		require.NoError(t, err)
		for got.Cursor != "" {
			next, err := s.Prune(t.Context(), dispatch.PruneParams{Events: now, Objects: now, Limit: 10, Cursor: got.Cursor})
			require.NoError(t, err)
			got.Objects, got.Cursor = got.Objects+next.Objects, next.Cursor
		}
		return got.Objects
	}
	open := map[string]pgx.Tx{}
	for _, id := range []string{"published", "rolled back"} {
		open[id] = p.begin(t, pgx.ReadCommitted)
	}
	require.Zero(t, forget(), "the events go")
	for id, tx := range open {
		refs, err := s.PublishTx(t.Context(), tx, []sender.Draft{about(id)})
		require.NoError(t, err)
		require.EqualValues(t, 2, refs[0].Version)
	}
	require.Equal(t, 1, forget(), "the one that nobody publishes about")
	require.NoError(t, open["published"].Commit(t.Context()))
	require.NoError(t, open["rolled back"].Rollback(t.Context()))
	require.Equal(t, 1, forget(), "the one that nobody has published about")
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_objects`))
	require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_forgettable`))
}

// All operations run at once. Nothing remains of pruned records, no live delivery is
// lost, and the tables are empty in the end.
func TestPruneBesideEverything(t *testing.T) {
	const rounds = 40
	f := newForgetting(t)
	owners, subscriptions := f.subscribe(4)
	var ids []string // of deliveries that were claimed
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(t.Context())
	done := make(chan struct{})
	g.Go(func() error { // publishes
		defer close(done)
		for range rounds {
			drafts := make([]sender.Draft, 5)
			for i := range drafts {
				drafts[i] = eventTo(owners[i%len(owners)])
				drafts[i].Key = drafts[i].ID
			}
			if err := f.publish(drafts...); err != nil {
				return err
			}
			f.advance(time.Second)
		}
		return nil
	})
	until := func(fn func() error) func() error {
		return func() error {
			for {
				select {
				case <-done:
					return nil
				default:
					if err := fn(); err != nil {
						return err
					}
				}
			}
		}
	}
	for range 2 { // expand, claim and record
		var claimed []dispatch.Claimed
		var n int
		g.Go(until(func() error {
			if _, _, err := f.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{}); err != nil {
				return err
			}
			b := recordAs(claimed, sender.ClassNone)
			for i := range b.Results {
				if n++; n%5 == 0 {
					b.Results[i].Class = sender.ClassStatus
				}
			}
			_, c, err := f.Step(ctx, dispatch.ExpandParams{}, b)
			claimed = c.Claimed
			mu.Lock()
			defer mu.Unlock()
			for i, d := range claimed {
				if len(d.Body) == 0 {
					return errors.New("what was claimed has no body")
				}
				ids = append(ids, "dlv_"+d.Event.ID[len("evt_"):]+"_"+strconv.FormatInt(d.Key.Subscription, 36))
				if i%7 == 0 {
					err = errors.Join(err, f.Release(ctx, []dispatch.Release{{Key: d.Key, Token: d.Token}}))
				}
			}
			return err
		}))
	}
	g.Go(until(func() error {
		mu.Lock()
		id := ""
		if len(ids) > 0 {
			id = ids[rand.IntN(len(ids))]
		}
		mu.Unlock()
		err := f.Redeliver(ctx, id, time.Time{})
		if errors.Is(err, sender.ErrNotFound) || errors.Is(err, sender.ErrRedacted) || errors.Is(err, sender.ErrCancelled) {
			return nil
		}
		return err
	}))
	g.Go(until(func() error {
		_, err := f.Redact(ctx, history.RedactParams{Subscriber: owners[0], Limit: 10})
		return err
	}))
	g.Go(until(func() error { // resumes one and skips its backlog
		err := f.InTx(ctx, func(tx pgx.Tx) error {
			if err := f.HoldSubscriptionTx(ctx, tx, subscriptions[1], sender.SubscriptionPaused, ""); err != nil {
				return err
			}
			return f.ResumeSubscriptionTx(ctx, tx, subscriptions[1], sender.Resume{None: true})
		})
		if err != nil {
			return err
		}
		_, err = f.Sweep(ctx, dispatch.SweepParams{Limit: 5})
		return err
	}))
	for range 2 {
		g.Go(until(func() error { return f.pruneAll(f.now().Add(-3*time.Second), 4) }))
	}
	require.NoError(t, g.Wait())
	for _, none := range []string{orphans, orphanKeys, orphanPlaces, lost} {
		require.Zero(t, f.count(none), none)
	}
	f.headsRight()

	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return f.DeleteSubscriptionTx(ctx, tx, subscriptions[2]) })
	var claimed []dispatch.Claimed
	for {
		f.expand()
		f.advance(24 * time.Hour)
		f.sweep()
		_, c, err := f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(claimed, sender.ClassNone))
		require.NoError(t, err)
		if claimed = c.Claimed; len(claimed) == 0 {
			break
		}
	}
	_, err := f.Redact(t.Context(), history.RedactParams{Subscriber: owners[0], Limit: 1000})
	require.NoError(t, err)
	require.Zero(t, f.count(exposedLeft))
	require.Zero(t, f.count(liveRedacted))
	f.sweep()
	f.advance(time.Second)
	require.NoError(t, f.pruneAll(f.now(), 50))
	for _, table := range []string{"events", "feed", "outbox", "keys", "pending", "leases", "waiting", "ended", "attempts", "left"} {
		require.Zero(t, f.count(`SELECT count(*) FROM surehook_`+table), table)
	}
	f.headsRight()
}

// An old event that is expanded in part keeps all its deliveries.
func TestPruneBesideExpansion(t *testing.T) {
	f := newForgetting(t)
	f.subscribe(3)
	require.NoError(t, f.publish(eventTo("")))
	_, _, err := f.Step(t.Context(), dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
	require.NoError(t, err)
	_, _, err = f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(f.claim(), sender.ClassNone))
	require.NoError(t, err)
	f.advance(100 * time.Hour)
	require.NoError(t, f.pruneAll(f.now(), 10))
	require.Zero(t, f.count(`SELECT count(*) FROM surehook_attempts`), "the record of what is delivered has gone")
	f.expand()
	claimed := f.claim()
	require.Len(t, claimed, 2)
	require.NotEmpty(t, claimed[0].Body)
}

// A delivery that is being redelivered during a prune keeps its record.
func TestPruneBesideRedelivery(t *testing.T) {
	f := newForgetting(t)
	owners, _ := f.subscribe(1)
	require.NoError(t, f.publish(eventTo(owners[0])))
	f.expand()
	_, _, err := f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(f.claim(), sender.ClassNone))
	require.NoError(t, err)
	f.advance(100 * time.Hour)
	page, _, err := f.Deliveries(t.Context(), history.DeliveryQuery{})
	require.NoError(t, err)
	release := f.hold("surehook_waiting")
	redelivered := f.begun(func(ctx context.Context) error { return f.Redeliver(ctx, page[0].ID, time.Time{}) })
	f.waits(1)
	before := f.now()
	pruned := f.begun(func(context.Context) error { return f.pruneAll(before, 10) })
	f.waits(2)
	release()
	redelivered()
	pruned()
	claimed := f.claim()
	require.Len(t, claimed, 1)
	require.Equal(t, 2, claimed[0].Number)
	require.Zero(t, f.count(orphans))
	require.Equal(t, 1, f.count(`SELECT count(*) FROM surehook_attempts`))
}

// In the end only the id remains of a deleted subscriber.
func TestPruneOfSubscriptionsLeavesNothing(t *testing.T) {
	f := newForgetting(t)
	owners, _ := f.subscribe(2)
	require.NoError(t, f.publish(eventTo(owners[0])))
	f.expand()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error { return f.DeleteSubscriberTx(ctx, tx, owners[0]) })
	_, _, err := f.Step(t.Context(), dispatch.ExpandParams{}, recordAs(f.claim(), sender.ClassNone))
	require.NoError(t, err)
	f.sweep()
	f.advance(time.Hour)
	require.NoError(t, f.pruneAll(f.now(), 50))
	for table, left := range map[string]int{"subscribers": 2, "subscriptions": 1, "heads": 1, "turns": sender.Lanes, "patterns": 1, "wakes": 0, "left": 0, "attempts": 0, "events": 0} {
		require.Equal(t, left, f.count(`SELECT count(*) FROM surehook_`+table), table)
	}
	f.headsRight()
}
