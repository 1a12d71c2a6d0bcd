package failover_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/replay"
)

// A dump is restored into another cluster, whose transactions have lower numbers.
// Events that were published before go to the subscriptions that had asked for them,
// and to no others.
func TestDumpIntoAnotherCluster(t *testing.T) {
	t.Parallel()
	ctx, w := t.Context(), newWorld(t)
	old, other := fresh(t), fresh(t)
	before := newService(t, w, old.DSN())
	run(t, before.pool, `DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM set_config('synchronous_commit', 'off', true), pg_current_xact_id(); COMMIT; END LOOP; END $$`)
	require.NoError(t, before.store.Migrate(ctx))
	closed := before.subscribe("closed")
	before.subscribe("kept")
	dead := before.subscribe("dead")
	w.failing = "dead"
	delivered := before.publish("a")
	await(t, "a dead letter", func() bool {
		before.drain()
		counts, err := before.history.Counts(ctx)
		require.NoError(t, err)
		return counts.DeadLettered == 1
	})
	w.failing = ""
	waiting := before.publish("a") // and not expanded
	require.NoError(t, old.Dump(ctx, other))

	after := newService(t, w, other.DSN())
	require.NoError(t, after.store.Migrate(ctx))
	require.NoError(t, after.store.Check(ctx))
	require.Less(t, read[int64](t, after.pool, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`),
		read[int64](t, before.pool, `SELECT min(xid::text::bigint) FROM surehook_outbox`), "the other cluster's transactions have lower numbers")
	done, err := after.store.Restored(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, 1, done.Expanded)

	after.subscribe("late")
	require.NoError(t, after.reg.Close(ctx, closed.ID))
	fresh := after.publish("a")
	after.drain()
	require.Equal(t, []string{delivered.ID, waiting.ID}, w.ids("closed"), "what was committed before it was closed")
	require.ElementsMatch(t, []string{delivered.ID, waiting.ID, fresh.ID}, w.ids("kept"))
	require.Equal(t, []string{fresh.ID}, w.ids("late"), "nothing of before it was there")

	// The dead letter from before is found, and sent again.
	replays, err := replay.New(after.store, nil)
	require.NoError(t, err)
	replay, err := replays.Create(ctx, replay.Request{Filter: replay.Filter{Subscription: dead.ID}})
	require.NoError(t, err)
	require.EqualValues(t, 1, replay.Matched)
	after.drain()
	require.ElementsMatch(t, []string{delivered.ID, waiting.ID, fresh.ID}, w.ids("dead"))
	counts, err := after.history.Counts(ctx)
	require.NoError(t, err)
	require.Zero(t, counts.Unexpanded)
	require.Zero(t, counts.DeadLettered)
}

// A database was brought back to an earlier state, and receivers have seen later events.
// The database does not give out again an id or version that they have seen.
func TestRestoreToAnEarlierPoint(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before, old := begun(t)
	w := before.world
	before.subscribe("r")
	before.publish("a")
	before.drain()
	waiting := before.publish("a")
	backup := serve(t, func() (*pgtest.Server, error) { return old.Copy(pgtest.Options{Durable: true}) })
	for _, object := range []string{"a", "a", "b", "b", "b"} {
		before.publish(object)
	}
	before.drain()
	seen := w.all("r")
	require.Len(t, seen, 7)
	page, err := before.store.Feed(ctx, feed.StoreQuery{Viewer: sender.Operator, Limit: 100})
	require.NoError(t, err)

	after := newService(t, w, backup.DSN())
	_, moved, err := after.store.RestoreIfMoved(ctx)
	require.NoError(t, err)
	require.False(t, moved, "a copy of the files has the same lineage: Restored is left to the operator")
	done, err := after.store.Restored(ctx, nil)
	require.NoError(t, err)
	again, err := after.store.Restored(ctx, nil)
	require.NoError(t, err)
	require.Greater(t, again.Position, done.Position)
	require.Greater(t, again.Version, done.Version)
	after.publish("a")
	after.publish("b") // which the backup does not know
	after.publish("b")
	after.drain()

	news := w.all("r")[len(seen):]
	require.Len(t, news, 4)
	versions := map[string]int64{}
	for _, p := range seen {
		versions[p.Object.ID] = max(versions[p.Object.ID], p.Version)
	}
	var ids []string
	for _, p := range news {
		if p.ID == waiting.ID {
			continue // it was committed before the backup
		}
		ids = append(ids, p.ID)
		require.Greater(t, p.Version, versions[p.Object.ID], "the version of %s", p.Object.ID)
	}
	require.Len(t, ids, 3)
	rest, err := after.store.Feed(ctx, feed.StoreQuery{Viewer: sender.Operator, After: page.Last, Limit: 100})
	require.NoError(t, err)
	var read []string
	for _, e := range rest.Events {
		read = append(read, e.ID)
	}
	require.ElementsMatch(t, append(ids, waiting.ID), read, "after the cursor of who has read all")
}

// When the backup is made, an event waits that was committed, and an earlier one is not
// committed. A reader of the feed has read that one, which is lost, and then gets the other,
// which the database has.
func TestWaitingEventComesAfterLostOnesInTheFeed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before, old := begun(t)
	w := before.world
	tx, err := before.pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }) // the pool waits for it
	lost, err := before.pub.PublishTx(ctx, tx, change("lost"))
	require.NoError(t, err)
	waiting := before.publish("kept")
	backup := serve(t, func() (*pgtest.Server, error) { return old.Copy(pgtest.Options{Durable: true}) })
	require.NoError(t, tx.Commit(ctx))
	before.drain()
	page := func(s *service, after int64) feed.StorePage {
		t.Helper()
		page, err := s.store.Feed(ctx, feed.StoreQuery{Viewer: sender.Operator, After: after, Limit: 1})
		require.NoError(t, err)
		require.Len(t, page.Events, 1)
		return page
	}
	read := page(before, 0)
	require.Equal(t, lost.ID, read.Events[0].ID)

	after := newService(t, w, backup.DSN())
	done, err := after.store.Restored(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, 1, done.Expanded)
	require.Equal(t, waiting.ID, page(after, read.Last).Events[0].ID)
}

// If the database is brought back while processes run, Restored makes them discard their
// memory and read it anew.
func TestRestoreUnderRunningProcesses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := begun(t)
	w := s.world
	sub := s.subscribe("first")
	d := s.dispatcher()
	move := func(name string) {
		t.Helper()
		url := "https://127.0.0.1/" + name
		_, err := s.reg.Update(ctx, sub.ID, sender.SubscriptionChange{URL: &url})
		require.NoError(t, err)
	}
	deliver := func() {
		t.Helper()
		s.publish("a")
		_, err := d.RunOnce(ctx)
		require.NoError(t, err)
	}
	deliver()
	// A restore brings back the row, and the value with which the store compares
	// its memory of it.
	run(t, s.pool, `CREATE TABLE kept AS SELECT url, version FROM surehook_subscriptions`)
	move("lost")
	deliver()
	run(t, s.pool, `UPDATE surehook_subscriptions s SET url = k.url, version = k.version FROM kept k`)
	_, err := s.store.Restored(context.Background(), nil)
	require.NoError(t, err)
	move("second")
	deliver()
	require.Len(t, w.ids("first"), 1)
	require.Len(t, w.ids("lost"), 1)
	require.Len(t, w.ids("second"), 1)
}
