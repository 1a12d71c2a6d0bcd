package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

type pgxStore = postgres.Store[pgx.Tx]

// place is a migrated schema, with a clock that a test may set. Stores that do not read
// it have the server's time. The next test has the schema too, with other rows.
type place struct {
	schema string
	pool   *pgxpool.Pool // not the stores'
	all    *schemas
}

func newPlace(t *testing.T) *place {
	t.Helper()
	all := sharedSchemas(t)
	return &place{schema: all.take(t), pool: all.pool, all: all}
}

// store returns a store like another process's: with a pool of its own.
func (p *place) store(t testing.TB, settings ...string) *pgxStore {
	t.Helper()
	s, err := postgres.New(openPool(t, settings...), &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	return s
}

// frozen is a store whose time only advance moves.
func (p *place) frozen(t testing.TB, settings ...string) *pgxStore {
	t.Helper()
	s := p.store(t, settings...)
	s.SetClock(clockOf(p.schema))
	return s
}

func (p *place) advance(t *testing.T, d time.Duration) { p.all.advance(t, p.schema)(d) }

// begin opens a transaction at an isolation level; it is rolled back at the end if it
// is still open.
func (p *place) begin(t testing.TB, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := p.pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: level})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// count reads a number; {} in a statement is the schema.
func (p *place) count(t testing.TB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, p.pool.QueryRow(context.Background(), in(p.schema, query), args...).Scan(&n), query)
	return n
}

// settingsOf reads the settings of a subscription, deleted or not.
func (p *place) settingsOf(t *testing.T, id string) sender.Settings {
	t.Helper()
	var stored string
	require.NoError(t, p.pool.QueryRow(context.Background(), in(p.schema, `SELECT settings FROM {}.surehook_subscriptions WHERE id = $1`), id).Scan(&stored))
	return sender.ReadSettings([]byte(stored))
}

func (p *place) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := p.pool.Exec(context.Background(), in(p.schema, query), args...)
	require.NoError(t, err, query)
}

// in puts a schema in the place of {} in a statement.
func in(schema, query string) string { return strings.ReplaceAll(query, "{}", `"`+schema+`"`) }

// draft is an event to a subscriber ("": to everyone), about an object of its own.
func draft(subscriber string) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{
		ID: id, Type: "subscriber.updated", Object: sender.Object{Type: "subscriber", ID: "object-" + id[len("evt_"):]}, Subscriber: subscriber,
		BodyHead: []byte(`{"id":"` + id + `","version":`), BodyTail: []byte(`}`),
	}
}

func subscriberID(owner int) string { return "sub_" + strconv.Itoa(owner) }

func subscriptionID(owner, i int) string { return fmt.Sprintf("wsub_%d_%d", owner, i) }

// register makes subscribers with a number of subscriptions each, at the time of the
// store's clock.
func register(t testing.TB, s *pgxStore, owners, each int, settings sender.Settings) {
	t.Helper()
	require.NoError(t, s.InTx(context.Background(), func(tx pgx.Tx) error {
		var created time.Time
		if err := tx.QueryRow(context.Background(), s.Text("SELECT {now}")).Scan(&created); err != nil {
			return err
		}
		for owner := range owners {
			if err := s.CreateSubscriberTx(context.Background(), tx, sender.Subscriber{ID: subscriberID(owner), CreatedAt: created}, nil); err != nil {
				return err
			}
			for i := range each {
				sub := sender.Subscription{ID: subscriptionID(owner, i), Subscriber: subscriberID(owner), URL: "https://example.com/", EventTypes: []string{"*"}, Settings: settings, CreatedAt: created}
				if err := s.CreateSubscriptionTx(context.Background(), tx, sub); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// publish publishes n events, to the subscribers in turn.
func publish(t testing.TB, s *pgxStore, n, owners int) {
	t.Helper()
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		drafts[i] = draft(subscriberID(i % owners))
	}
	require.NoError(t, publishInTx(context.Background(), s, drafts...))
}

func publishInTx(ctx context.Context, s *pgxStore, drafts ...sender.Draft) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := s.PublishTx(ctx, tx, drafts)
		return err
	})
}

// expandAll returns how many deliveries it made.
func expandAll(t testing.TB, s *pgxStore) (made int) {
	t.Helper()
	for more := true; more; {
		x, _, err := s.Step(context.Background(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		made, more = made+x.Deliveries, x.More
	}
	return made
}

// tokens are those of the claims.
var tokens atomic.Int64

// batchOf claims up to slots deliveries and records that these, claimed before,
// have succeeded.
func batchOf(claimed []dispatch.Claimed, slots int) dispatch.Batch {
	b := dispatch.Batch{Decide: dispatch.Policy{}.Decide}
	b.Claim.Lease, b.Claim.Token = time.Minute, tokens.Add(1)
	for lane := range b.Claim.Lanes {
		b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: slots, PerSubscriber: slots, PerSubscription: slots}
	}
	for i := range claimed {
		c := &claimed[i]
		b.Results = append(b.Results, dispatch.Result{
			Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: 5 * time.Millisecond, StatusCode: 204,
		})
	}
	return b
}

func exchange(t testing.TB, s *pgxStore, b dispatch.Batch) dispatch.Claims {
	t.Helper()
	_, c, err := s.Step(context.Background(), dispatch.ExpandParams{}, b)
	require.NoError(t, err)
	return c
}

// drainAll delivers and sweeps until nothing is due, and returns how many it has
// claimed of each subscription.
func drainAll(t testing.TB, s *pgxStore) map[string]int {
	t.Helper()
	of := map[string]int{}
	var claimed []dispatch.Claimed
	for more := true; more; {
		expandAll(t, s)
		claimed = exchange(t, s, batchOf(claimed, 1000)).Claimed
		for id, n := range claimedOf(claimed) {
			of[id] += n
		}
		swept, err := s.Sweep(context.Background(), dispatch.SweepParams{Limit: 1000})
		require.NoError(t, err)
		more = len(claimed)+swept.Ended > 0
	}
	return of
}

// claimedOf counts the claimed deliveries of each subscription.
func claimedOf(cs []dispatch.Claimed) map[string]int {
	all := map[string]int{}
	for _, c := range cs {
		all[c.Target.Subscription]++
	}
	return all
}

// settled checks that nothing is live, and that the heads say so. Each delivery is
// delivered or has ended otherwise, and its attempts are numbered from 1 on, without a
// gap.
func (p *place) settled(t testing.TB) {
	t.Helper()
	for _, table := range []string{"outbox", "pending", "leases", "waiting", "lines", "wakes"} {
		require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_`+table), table)
	}
	p.consistent(t)
}

// delivered checks that all is settled, that nothing has failed, and that the events'
// positions have no gaps.
func (p *place) delivered(t *testing.T) {
	t.Helper()
	p.settled(t)
	require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_ended`))
	require.Zero(t, p.count(t, `SELECT max(position) - $1 - count(*) FROM {}.surehook_feed`, pgtest.Old), "positions have no gaps")
}

// linedUp checks that of each line just the right one is out, and that the heads' counts match
// the rows.
func (p *place) linedUp(t *testing.T) {
	t.Helper()
	require.Zero(t, p.count(t, wrongHeads), "heads whose counters are not the numbers of the rows")
	require.Zero(t, p.count(t, wrongLines), "lines of which not just the right one is out")
}

// consistent checks that the heads' counts match the rows, and that attempts are
// numbered from 1 on.
func (p *place) consistent(t testing.TB) {
	t.Helper()
	require.Zero(t, p.count(t, wrongHeads), "heads whose counters are not the numbers of the rows")
	require.Zero(t, p.count(t, wrongLines), "lines of which not just the right one is out")
	require.Zero(t, p.count(t, lateLeases), "heads that take the first of their leases to end later than it does")
	require.Zero(t, p.count(t, lateHeads), "heads that are due later than something of theirs")
	require.Zero(t, p.count(t, lateTurns), "turns that are due later than a head of theirs")
	require.Zero(t, p.count(t, `SELECT count(*) FROM (SELECT 1 FROM {}.surehook_attempts GROUP BY event, subscription HAVING max(number) <> count(*) OR min(number) <> 1) x`),
		"deliveries with an attempt missing")
}

const (
	lineOut = `(EXISTS (SELECT 1 FROM {}.surehook_leases o WHERE o.subscription = x.subscription AND o.event = x.event)
			OR EXISTS (SELECT 1 FROM {}.surehook_pending o WHERE o.subscription = x.subscription AND o.event = x.event)
			OR EXISTS (SELECT 1 FROM {}.surehook_waiting o WHERE o.subscription = x.subscription AND o.event = x.event))`
	// wrongLines are lines of which not just the one is out that is preceded, or else the
	// first, unless it is a dead letter or halts. Lines of what is deleted do not advance.
	wrongLines = `SELECT count(*) FROM (
		SELECT array_agg(x.event) FILTER (WHERE ` + lineOut + `) AS out, array_agg(x.event) FILTER (WHERE x.preceded) AS preceded,
			(array_agg(x.event ORDER BY x.event))[1:1] AS first, (array_agg(x.place ORDER BY x.event))[1] AS place, (array_agg(x.halts ORDER BY x.event))[1] AS halts
		FROM {}.surehook_lines x JOIN {}.surehook_subscriptions s ON s.no = x.subscription WHERE s.status NOT IN ('deleted', 'swept')
		GROUP BY x.subscription, x.object) l
		WHERE out IS DISTINCT FROM coalesce(preceded, CASE WHEN place < 3 AND NOT halts THEN first END)`
	wrongHeads = `SELECT count(*) FROM {}.surehook_heads h WHERE
		(h.pending, h.waiting, h.leased, h.behind, h.lined, h.dead) IS DISTINCT FROM (
			(SELECT count(*) FROM {}.surehook_pending WHERE subscription = h.subscription),
			(SELECT count(*) FROM {}.surehook_waiting WHERE subscription = h.subscription),
			(SELECT count(*) FROM {}.surehook_leases WHERE subscription = h.subscription),
			(SELECT count(*) FROM {}.surehook_lines x WHERE subscription = h.subscription AND place < 3 AND NOT ` + lineOut + `),
			(SELECT count(*) FROM {}.surehook_lines WHERE subscription = h.subscription),
			(SELECT count(*) FROM {}.surehook_ended WHERE subscription = h.subscription AND status = 'dead_lettered'))`
	lateLeases = `SELECT count(*) FROM {}.surehook_heads h WHERE h.leased > 0 AND h.leases_end > (
		SELECT min(until) FROM {}.surehook_leases WHERE subscription = h.subscription)`
	// Deliveries that their subscription's limits hold back may be due later.
	lateHeads = `SELECT count(*) FROM {}.surehook_heads h JOIN {}.surehook_subscriptions s ON s.no = h.subscription
		WHERE h.open AND s.settings = '{}' AND h.next_due > least(
			(SELECT min(due) FROM {}.surehook_pending WHERE subscription = h.subscription),
			(SELECT min(due) FROM {}.surehook_waiting WHERE subscription = h.subscription),
			(SELECT min(until) FROM {}.surehook_leases WHERE subscription = h.subscription)) + interval '1 hour'`
	lateTurns = `SELECT count(*) FROM {}.surehook_heads h LEFT JOIN {}.surehook_turns t ON t.lane = h.lane AND t.subscriber = h.subscriber
		WHERE h.next_due < 'infinity' AND (t.low IS NULL OR t.low > h.next_due OR t.next_due > greatest(h.next_due, clock_timestamp()))`
)
