package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

// draft has a body of at least size bytes.
func draft(subscriber string, size int) sender.Draft {
	id := newid.New("evt_", time.Now())
	head := []byte(`{"id":"` + id + `","version":`)
	return sender.Draft{
		ID: id, Type: "subscriber.updated", Object: sender.Object{Type: "subscriber", ID: "object-" + id[len("evt_"):]}, Subscriber: subscriber,
		BodyHead: head, BodyTail: append(bytes.Repeat([]byte(" "), max(0, size-len(head)-2)), '}'),
	}
}

// register makes subscribers with one subscription each and returns their ids.
func register(t testing.TB, s *sqlite.Store, n int) (subscribers []string) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
		for i := range n {
			sub := sender.Subscription{ID: "wsub_" + strconv.Itoa(i), Subscriber: "sub_" + strconv.Itoa(i), URL: "https://example.com/", EventTypes: []string{"*"}}
			if err := s.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: sub.Subscriber}, nil); err != nil {
				return err
			}
			if err := s.CreateSubscriptionTx(ctx, tx, sub); err != nil {
				return err
			}
			subscribers = append(subscribers, sub.Subscriber)
		}
		return nil
	}))
	return subscribers
}

// publish publishes n events, to the subscribers in turn.
func publish(t testing.TB, s *sqlite.Store, n, size int, subscribers []string) {
	t.Helper()
	for n > 0 {
		drafts := make([]sender.Draft, min(n, 1000))
		for i := range drafts {
			drafts[i] = draft(subscribers[i%len(subscribers)], size)
		}
		require.NoError(t, publishInTx(context.Background(), s, drafts...))
		n -= len(drafts)
	}
}

func publishInTx(ctx context.Context, s *sqlite.Store, drafts ...sender.Draft) error {
	return s.InTx(ctx, func(tx *sql.Tx) error {
		_, err := s.PublishTx(ctx, tx, drafts)
		return err
	})
}

func expandAll(t testing.TB, s *sqlite.Store) {
	t.Helper()
	for more := true; more; {
		x, _, err := s.Step(context.Background(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		more = x.More
	}
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

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(context.Background(), query).Scan(&n), query)
	return n
}

// settled checks that nothing is live or has failed, and that attempts are numbered from 1
// on, without a gap.
func settled(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, table := range []string{"pending", "leases", "waiting", "lines", "ended"} {
		require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_`+table), table)
	}
	require.Zero(t, count(t, db, `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription HAVING max(number) <> count(*) OR min(number) <> 1)`),
		"deliveries with an attempt missing")
}

// lined is a store whose steps are followed by a look at the lines of objects.
type lined struct {
	*sqlite.Store
	t  *testing.T
	db *sql.DB
}

func (l lined) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := l.Store.Step(ctx, p, b)
	if err == nil && count(l.t, l.db, anyLines) > 0 {
		wrong, to := make([]int, len(wrongLines)), make([]any, len(wrongLines))
		for i := range wrong {
			to[i] = &wrong[i]
		}
		require.NoError(l.t, l.db.QueryRowContext(context.Background(), countWrongLines).Scan(to...))
		for i, n := range wrong {
			if n > 0 {
				l.t.Errorf("%d %s", n, wrongLines[i].text)
			}
		}
	}
	return x, c, err
}

// anyLines is 0 if there is nothing in which wrongLines could find anything. Most steps of
// the suite leave it so, and to compile wrongLines costs more than the step.
const anyLines = `SELECT EXISTS (SELECT 1 FROM surehook_lines) OR EXISTS (SELECT 1 FROM surehook_heads WHERE lined <> 0 OR behind <> 0)`

// linesOut has the lines' rows, each with how often it is out.
const linesOut = `SELECT *, (SELECT count(*) FROM surehook_pending x WHERE x.subscription = l.subscription AND x.event = l.event)
	+ (SELECT count(*) FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = l.event)
	+ (SELECT count(*) FROM surehook_waiting x WHERE x.subscription = l.subscription AND x.event = l.event) AS out FROM surehook_lines l`

var countWrongLines = func() string {
	var counts []string
	for _, wrong := range wrongLines {
		counts = append(counts, "("+wrong.query+")")
	}
	return `WITH l AS MATERIALIZED (` + linesOut + `) SELECT ` + strings.Join(counts, ", ")
}()

var wrongLines = []wrongRow{
	{"lines have several deliveries out", `SELECT count(*) FROM (SELECT 1 FROM l GROUP BY subscription, object HAVING sum(out) > 1)`},
	{"deliveries are marked and not out, or not marked, and out before an earlier one", `SELECT count(*) FROM l WHERE place = 0 AND out = 0
		OR place > 0 AND out > 0 AND EXISTS (SELECT 1 FROM l f WHERE f.subscription = l.subscription AND f.object = l.object AND f.event < l.event)`},
	{"dead letters in lines are out", `SELECT count(*) FROM l WHERE place = 3 AND out > 0`},
	{"lines have nothing out, do not halt, and have no dead letter first", `SELECT count(*) FROM (SELECT subscription, min(event) AS event, sum(out) AS out FROM l GROUP BY subscription, object) g
		JOIN l USING (subscription, event) JOIN surehook_subscriptions s ON s.no = subscription
		WHERE g.out = 0 AND l.place < 3 AND l.halts = 0 AND s.status NOT IN ('deleted', 'swept')`},
	{"heads miscount their lines", `SELECT count(*) FROM surehook_heads h
		WHERE lined <> (SELECT count(*) FROM l WHERE l.subscription = h.subscription)
		OR behind <> (SELECT count(*) FROM l WHERE l.subscription = h.subscription AND place < 3 AND out = 0)`},
}
