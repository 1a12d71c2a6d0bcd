package postgres_test

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

// migrateTo makes a schema as a release left it that knew the first n migrations.
func migrateTo(t *testing.T, n int) *place {
	t.Helper()
	p := &place{schema: newid.New("test_", time.Now()), pool: openPool(t)}
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	require.NoError(t, err)
	some := fstest.MapFS{}
	for _, name := range names[:n] {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		require.NoError(t, err)
		some[name] = &fstest.MapFile{Data: text}
	}
	db := stdlib.OpenDBFromPool(p.pool)
	defer db.Close()
	require.NoError(t, migrate.Postgres(t.Context(), db, p.schema, "sender", some))
	return p
}

// Who does not apply migration 006 is told, and what waits when it is applied goes on.
func TestMigrateWhatWaits(t *testing.T) {
	p := migrateTo(t, 5)
	s := p.store(t)
	err := s.Check(t.Context())
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.ErrorContains(t, err, "migration 006 is missing")
	require.ErrorContains(t, err, "surehook_waiting.spared")

	register(t, s, 1, 2, sender.Settings{})
	require.NoError(t, publishInTx(t.Context(), s, draft(subscriberID(0))))
	_, err = s.Expand(t.Context(), sender.ExpandParams{Events: 10, Deliveries: 10})
	require.NoError(t, err)
	p.exec(t, `WITH d AS (DELETE FROM {}.surehook_pending WHERE (subscription, event) IN (SELECT subscription, event FROM {}.surehook_pending LIMIT 1) RETURNING *),
			h AS (UPDATE {}.surehook_heads x SET pending = x.pending - 1, waiting = x.waiting + 1, waiting_from = d.due FROM d WHERE x.subscription = d.subscription)
		INSERT INTO {}.surehook_waiting (subscription, event, due, number, tries, stood, epoch, replay, rank, single) SELECT subscription, event, due, 0, 0, 0, 0, 0, 0, false FROM d`)

	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Check(t.Context()))
	require.Equal(t, map[string]int{subscriptionID(0, 0): 1, subscriptionID(0, 1): 1}, drainAll(t, s))
	p.settled(t)
}

// Before migration 005 an event's row in the outbox had a number of its own. What is
// there when it is applied, begun or not, is expanded before what comes after it.
func TestMigrateWithEventsInTheOutbox(t *testing.T) {
	p := migrateTo(t, 4)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	old := func() (id string) {
		t.Helper()
		d := draft(subscriberID(0))
		p.exec(t, `WITH e AS (INSERT INTO {}.surehook_events (id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body)
				SELECT $1, $2, $3, $4, 1, no, 0, now(), false, '{}' FROM {}.surehook_subscribers RETURNING *)
			INSERT INTO {}.surehook_outbox (event, patterns, subscriber, subscription, created_at, notice)
				SELECT no, 'subscriber.updated subscriber.* *', subscriber, 0, created_at, false FROM e`, d.ID, d.Type, d.Object.Type, d.Object.ID)
		return d.ID
	}
	// The two numberings go apart with what is rolled back, and with marks.
	p.exec(t, `SELECT setval('{}.surehook_events_no_seq', 100)`)
	begun := old()
	p.exec(t, `WITH first AS (SELECT min(no) AS no FROM {}.surehook_subscriptions),
			f AS (INSERT INTO {}.surehook_feed (position, event, newest, late) SELECT 1, no, created_at, false FROM {}.surehook_events),
			h AS (UPDATE {}.surehook_feed_head SET position = 1)
		UPDATE {}.surehook_outbox SET position = 1, after = first.no FROM first`)
	waiting := old()

	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Check(t.Context()))
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_outbox x JOIN {}.surehook_feed_head h ON h.begun = x.seq WHERE x.position IS NOT NULL`))
	after := draft(subscriberID(0))
	require.NoError(t, publishInTx(t.Context(), s, after))
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_outbox x JOIN {}.surehook_events e ON e.no = x.event
		WHERE e.id = $1 AND x.seq = e.no AND e.no > (SELECT max(no) FROM {}.surehook_events WHERE id <> e.id)`, after.ID), "it has one number, and the highest")
	require.Equal(t, map[string]int{subscriptionID(0, 0): 2, subscriptionID(0, 1): 3}, drainAll(t, s), "the first subscription had the first event")
	for position, id := range []string{begun, waiting, after.ID} {
		require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_feed f JOIN {}.surehook_events e ON e.no = f.event WHERE f.position = $1 AND e.id = $2`, position+1, id))
	}
	p.settled(t)
}
