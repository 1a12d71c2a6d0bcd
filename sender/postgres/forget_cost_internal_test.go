package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// addressed publishes events to a subscriber, and returns the object that they are about.
func (c *crowd) addressed(subscriber string, n int) sender.Object {
	c.t.Helper()
	about := sender.Object{Type: "thing", ID: newid.New("", time.Now())}
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		drafts[i] = sender.Draft{
			ID: newid.New("evt_", time.Now()), Type: "a.b", Object: about, Subscriber: subscriber,
			BodyHead: []byte(`{"version":`), BodyTail: []byte(`}`),
		}
	}
	require.NoError(c.t, c.InTx(context.Background(), func(tx pgx.Tx) error {
		_, err := c.PublishTx(context.Background(), tx, drafts)
		return err
	}))
	return about
}

// expandAll makes all deliveries.
func (c *crowd) expandAll() {
	c.t.Helper()
	for more := true; more; {
		x, _, err := c.Step(context.Background(), dispatch.ExpandParams{Events: 100, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(c.t, err)
		more = x.More
	}
}

// dead adds subscriptions without live deliveries.
func (c *crowd) dead(n int) {
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_heads (subscription, subscriber) SELECT %d + s, 1 FROM generate_series(1, %d) s`, int64(1)<<41, n))
}

// idle adds registered subscriptions for which nothing was published.
func (c *crowd) idle(n int) {
	c.exec(fmt.Sprintf(`WITH made AS (
		INSERT INTO {}.surehook_subscriptions (id, subscriber, url, event_types, description, settings, created_at, status)
			SELECT 'idle_' || i, (SELECT min(no) FROM {}.surehook_subscribers), '', '[]', '', '{}', now(), 'active' FROM generate_series(1, %d) i RETURNING no, subscriber)
		INSERT INTO {}.surehook_heads (subscription, subscriber) SELECT no, subscriber FROM made`, n))
}

// A batch of pruning, forgetting or redacting, and the backlog of a minute, read no more if
// there are more subscriptions without live deliveries, or more remembered objects.
func TestCostOfForgettingDoesNotDependOnWhatIsRegistered(t *testing.T) {
	ctx := t.Context()
	c := newEmptyCrowd(t)
	require.NoError(t, c.InTx(ctx, func(tx pgx.Tx) error {
		for _, id := range []string{"sub_asks", "sub_asks_nothing"} {
			if err := c.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: id}, nil); err != nil {
				return err
			}
		}
		return c.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "wsub_a", Subscriber: "sub_asks", URL: "https://example.com/", EventTypes: []string{"*"}})
	}))
	prune := func() (blocks int) {
		c.addressed("sub_asks_nothing", 10)
		c.expandAll()
		before := c.blocks()
		out, err := c.Prune(ctx, dispatch.PruneParams{Events: time.Now().Add(time.Hour), Objects: time.Now().Add(-time.Hour), Limit: 100})
		require.NoError(t, err)
		require.Equal(t, 10, out.Events)
		return c.blocks() - before
	}
	forget := func() (blocks int) {
		before := c.blocks()
		out, err := c.Prune(ctx, dispatch.PruneParams{Objects: time.Now().Add(time.Hour), Limit: 100})
		require.NoError(t, err)
		require.Equal(t, 1, out.Objects)
		return c.blocks() - before
	}
	redact := func() (blocks int) {
		about := c.addressed("sub_asks", 10)
		c.expandAll()
		before := c.blocks()
		out, err := c.Redact(ctx, history.RedactParams{Object: about, Limit: 100})
		require.NoError(t, err)
		require.Equal(t, 10, out.Deliveries)
		return c.blocks() - before
	}
	measure := func() (blocks int) { // the backlog, as once a minute
		c.addressed("sub_asks", 1)
		c.expandAll()
		before := c.blocks()
		now := timestampOf(time.Now().Add(time.Hour))
		c.rollups.add(now.time().Truncate(time.Minute), 1, &history.Rollup{Published: 1})
		require.NoError(t, c.storeRollups(ctx, now))
		require.Positive(t, c.rollups.measured.counts.Live)
		c.rollups = rollups{}
		return c.blocks() - before
	}
	prune()
	forget()
	redact()
	measure()
	pruned, forgotten, redacted, measured := prune(), forget(), redact(), measure()
	c.dead(50_000)
	c.exec(`INSERT INTO {}.surehook_objects (type, id, version) SELECT 'other', o, 1 FROM generate_series(1, 50000) o`)
	prunedThen, forgottenThen, redactedThen := prune(), forget(), redact()
	c.idle(50_000)
	measuredThen := measure()
	t.Logf("blocks of a batch: pruning %d, and with 50,000 dead heads and objects %d; forgetting %d and %d; redacting %d and %d; of the backlog %d and %d",
		pruned, prunedThen, forgotten, forgottenThen, redacted, redactedThen, measured, measuredThen)
	// Some indexes have a level more, and the tables that other tests make and drop have
	// catalogs read again. To read all of 50,000 rows takes more blocks than this.
	const more = 250
	require.LessOrEqual(t, measuredThen, measured+more)
	require.LessOrEqual(t, forgottenThen, forgotten+more)
	require.LessOrEqual(t, prunedThen, pruned+more)
	require.LessOrEqual(t, redactedThen, redacted+more)
}

// An event that is redacted before it is expanded is found by its key.
func TestCostOfRedactingDoesNotDependOnTheOutbox(t *testing.T) {
	c := newEmptyCrowd(t)
	c.exec(`INSERT INTO {}.surehook_outbox (event, patterns, subscriber, subscription, created_at, notice, bytes) SELECT 1, 'a.b', 0, 0, now(), false, 100 FROM generate_series(1, 50000)`)
	about := c.addressed("", 10)
	before := c.blocks()
	out, err := c.Redact(t.Context(), history.RedactParams{Object: about, Limit: 100})
	require.NoError(t, err)
	require.Equal(t, 10, out.Events)
	blocks := c.blocks() - before
	t.Logf("blocks of a batch beside 50,000 rows: %d", blocks)
	require.LessOrEqual(t, blocks, 200)
}

// A batch of sweeping reads no more because of swept rows that are not vacuumed yet,
// and finds the rows that remain.
func TestCostOfSweepingDoesNotDependOnWhatWasSwept(t *testing.T) {
	for table, insert := range map[string]string{
		"pending": `(subscription, event, no, due, notice, bytes) SELECT s.no, e, e, now(), false, 100`,
		"waiting": `(subscription, event, due, number, tries, stood, epoch, replay, rank, single, notice, bytes) SELECT s.no, e, now(), 1, 1, 0, 0, 0, 0, false, false, 100`,
	} {
		t.Run(table, func(t *testing.T) {
			sweepsAtACost(t, table, `INSERT INTO {}.surehook_`+table+` `+insert+` FROM {}.surehook_subscriptions s, generate_series(%d, %d) e`)
		})
	}
}

func sweepsAtACost(t *testing.T, table, insert string) {
	const backlog, batch = 20_000, 500
	c := newEmptyCrowd(t)
	ctx := t.Context()
	require.NoError(t, c.InTx(ctx, func(tx pgx.Tx) error {
		if err := c.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "sub_a"}, nil); err != nil {
			return err
		}
		return c.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "wsub_a", Subscriber: "sub_a", URL: "https://example.com/", EventTypes: []string{"*"}})
	}))
	c.exec(fmt.Sprintf(insert, 11, 10+backlog))
	c.exec(fmt.Sprintf(`UPDATE {}.surehook_heads SET %s = %d, next_due = now()`, table, backlog+1))
	require.NoError(t, c.InTx(ctx, func(tx pgx.Tx) error { return c.DeleteSubscriptionTx(ctx, tx, "wsub_a") }))
	// An old snapshot keeps deleted rows from being marked as dead in the indexes.
	conn, err := pgx.ConnectConfig(ctx, c.pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_snapshot()`)
	require.NoError(t, err)
	entries := func() int { // entries of the index read so far, with the dead ones
		c.blocks() // makes the server count them
		return c.count(`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelid = '{}.surehook_` + table + `_pkey'::regclass`)
	}
	last := 0
	for done := 0; done < backlog; done += batch {
		before := entries()
		n, err := c.Sweep(ctx, dispatch.SweepParams{Limit: batch})
		require.NoError(t, err)
		require.Equal(t, batch, n.Ended)
		last = entries() - before
	}
	t.Logf("entries of the index that the last batch has read: %d", last)
	require.LessOrEqual(t, last, 5*batch)

	c.exec(fmt.Sprintf(insert, 1, 1))
	_, err = c.Sweep(ctx, dispatch.SweepParams{Limit: batch})
	require.NoError(t, err)
	n, err := c.Sweep(ctx, dispatch.SweepParams{Limit: batch})
	require.NoError(t, err)
	require.Equal(t, 1, n.Ended, "what is behind the place that is remembered")
	require.Equal(t, 1, c.count(`SELECT count(*) FROM {}.surehook_ended WHERE event = 1`))
}
