package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

// forgetting is a store whose time only advance moves, in a schema that it has alone.
type forgetting struct {
	*testing.T
	*postgres.Store[pgx.Tx]
	pool   *pgxpool.Pool // the store's; its search_path is the schema
	schema string
	all    *schemas
}

func newForgetting(t *testing.T) *forgetting {
	t.Helper()
	all := sharedSchemas(t)
	f := &forgetting{T: t, all: all, schema: all.take(t)}
	f.pool = openPool(t, "search_path", f.schema, "application_name", f.schema)
	s, err := postgres.New(f.pool, &postgres.Config{Schema: f.schema})
	require.NoError(t, err)
	s.SetClock(clockOf(f.schema))
	f.Store = s
	return f
}

func (f *forgetting) advance(d time.Duration) { f.all.advance(f.T, f.schema)(d) }

func (f *forgetting) exec(query string) {
	f.Helper()
	_, err := f.pool.Exec(context.Background(), query)
	require.NoError(f, err, query)
}

func (f *forgetting) count(query string) (n int) {
	f.Helper()
	require.NoError(f, f.pool.QueryRow(context.Background(), query).Scan(&n), query)
	return n
}

func (f *forgetting) now() (at time.Time) {
	f.Helper()
	require.NoError(f, f.pool.QueryRow(context.Background(), `SELECT `+clockOf(f.schema)).Scan(&at))
	return at
}

func (f *forgetting) inTx(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.Helper()
	require.NoError(f, f.InTx(f.Context(), func(tx pgx.Tx) error { return fn(f.Context(), tx) }))
}

// subscribe makes subscribers with one subscription to all events each.
func (f *forgetting) subscribe(n int) (subscribers, subscriptions []string) {
	f.Helper()
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		for i := range n {
			sub := sender.Subscription{ID: "wsub_" + strconv.Itoa(i), Subscriber: "sub_" + strconv.Itoa(i), URL: "https://example.com/", EventTypes: []string{"*"}}
			if err := f.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: sub.Subscriber}, nil); err != nil {
				return err
			}
			if err := f.CreateSubscriptionTx(ctx, tx, sub); err != nil {
				return err
			}
			subscribers, subscriptions = append(subscribers, sub.Subscriber), append(subscriptions, sub.ID)
		}
		return nil
	})
	return subscribers, subscriptions
}

// eventTo is an event to a subscriber, about an object of its own.
func eventTo(subscriber string) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{
		ID: id, Type: "subscriber.updated", Object: sender.Object{Type: "subscriber", ID: "object-" + id[len("evt_"):]}, Subscriber: subscriber,
		BodyHead: []byte(`{"id":"` + id + `","version":`), BodyTail: []byte(`}`),
	}
}

func (f *forgetting) publish(drafts ...sender.Draft) error {
	return f.InTx(f.Context(), func(tx pgx.Tx) error {
		_, err := f.PublishTx(f.Context(), tx, drafts)
		return err
	})
}

func (f *forgetting) expand() {
	f.Helper()
	for more := true; more; {
		x, _, err := f.Step(f.Context(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(f, err)
		more = x.More
	}
}

func (f *forgetting) sweep() int {
	f.Helper()
	swept, err := f.Sweep(f.Context(), dispatch.SweepParams{Limit: 100})
	require.NoError(f, err)
	return swept.Ended
}

func (f *forgetting) claim() []dispatch.Claimed {
	f.Helper()
	_, c, err := f.Step(f.Context(), dispatch.ExpandParams{}, recordAs(nil, sender.ClassNone))
	require.NoError(f, err)
	return c.Claimed
}

// exchange records results, and claims everything.
func recordAs(claimed []dispatch.Claimed, class sender.Class) dispatch.Batch {
	b := dispatch.Batch{Decide: dispatch.Policy{}.Decide}
	b.Claim.Lease = time.Minute
	for lane := range b.Claim.Lanes {
		b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: 1000, PerSubscriber: 1000, PerSubscription: 1000}
	}
	for i := range claimed {
		c := &claimed[i]
		b.Results = append(b.Results, dispatch.Result{
			Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: 5 * time.Millisecond, Class: class, Snippet: []byte("snippet"), Headers: "A: b\n\n",
		})
	}
	return b
}

// hold blocks transactions that insert into a table, until it is released.
func (f *forgetting) hold(table string) (release func()) {
	f.Helper()
	f.Cleanup(func() { f.exec(`DROP FUNCTION hold() CASCADE`) })
	f.exec(fmt.Sprintf(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext('%s')); RETURN NULL; END$$;
		CREATE TRIGGER hold AFTER INSERT ON %s EXECUTE FUNCTION hold()`, f.schema, table))
	conn, err := f.all.pool.Acquire(context.Background())
	require.NoError(f, err)
	f.Cleanup(conn.Release)
	lock := func(call string) {
		_, err := conn.Exec(context.Background(), fmt.Sprintf(`SELECT %s(hashtext('%s'))`, call, f.schema))
		require.NoError(f, err)
	}
	lock("pg_advisory_lock")
	release = sync.OnceFunc(func() { lock("pg_advisory_unlock") })
	f.Cleanup(release)
	return release
}

// waits returns once n transactions of the store wait for locks.
func (f *forgetting) waits(n int) {
	f.Helper()
	require.Eventually(f, func() bool {
		var waiting int
		err := f.all.pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, f.schema).Scan(&waiting)
		return err == nil && waiting == n
	}, 20*time.Second, time.Millisecond)
}

// begun runs fn beside the test, and fails the test if fn fails. The returned function
// waits for fn.
func (f *forgetting) begun(fn func(ctx context.Context) error) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- fn(f.Context()) }()
	return func() {
		f.Helper()
		require.NoError(f, <-done)
	}
}

// headsRight ends the test unless the heads' counts match the rows.
func (f *forgetting) headsRight() {
	f.Helper()
	require.Zero(f, f.count(`SELECT count(*) FROM surehook_heads h WHERE (h.pending, h.waiting, h.leased, h.dead) IS DISTINCT FROM (
		(SELECT count(*) FROM surehook_pending WHERE subscription = h.subscription),
		(SELECT count(*) FROM surehook_waiting WHERE subscription = h.subscription),
		(SELECT count(*) FROM surehook_leases WHERE subscription = h.subscription),
		(SELECT count(*) FROM surehook_ended WHERE subscription = h.subscription AND status = 'dead_lettered'))`))
}
