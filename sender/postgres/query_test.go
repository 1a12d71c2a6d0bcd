package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
)

// asking is a schema with subscribers who have one subscription each, and a clock that
// stands still.
type asking struct {
	*testing.T
	all        *schemas
	schema     string
	store      *pgxStore
	subscriber string
}

func newAsking(t *testing.T, subscriptions int) *asking {
	t.Helper()
	all := sharedSchemas(t)
	a := &asking{T: t, all: all, schema: all.take(t), subscriber: "sub_0"}
	s, err := postgres.New(all.pool, &postgres.Config{Schema: a.schema})
	require.NoError(t, err)
	s.SetClock(clockOf(a.schema))
	a.store = s
	require.NoError(t, a.store.InTx(t.Context(), func(tx pgx.Tx) error {
		if err := a.store.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: a.subscriber}, nil); err != nil {
			return err
		}
		for i := range subscriptions {
			sub := sender.Subscription{ID: "wsub_" + strconv.Itoa(i), Subscriber: a.subscriber, URL: "https://example.com/", EventTypes: []string{"*"}}
			if err := a.store.CreateSubscriptionTx(t.Context(), tx, sub); err != nil {
				return err
			}
		}
		return nil
	}))
	return a
}

func (a *asking) advance(d time.Duration) { a.all.advance(a.T, a.schema)(d) }

func (a *asking) event(eventType string) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{ID: id, Type: eventType, Object: sender.Object{Type: "thing", ID: id[len("evt_"):]}, BodyHead: []byte(`{"version":`), BodyTail: []byte(`}`)}
}

func (a *asking) publish(n int) {
	a.Helper()
	drafts := make([]sender.Draft, n)
	for i := range drafts {
		drafts[i] = a.event("a.b")
	}
	require.NoError(a, publishInTx(a.Context(), a.store, drafts...))
}

func (a *asking) expand() {
	a.Helper()
	expandAll(a, a.store)
}

// A list reads ahead from many subscriptions together, and keeps its order.
func TestListOfManySubscriptions(t *testing.T) {
	for _, c := range []struct{ subscriptions, events int }{{150, 6}, {4, 60}} {
		a := newAsking(t, c.subscriptions)
		a.publish(c.events)
		a.expand()
		want := []string{}
		all, next, err := a.store.Events(t.Context(), history.EventQuery{Limit: 200})
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, all, c.events)
		for _, e := range all {
			for i := range c.subscriptions {
				want = append(want, fmt.Sprintf("%s wsub_%d", e.ID, i))
			}
		}
		for _, q := range []history.DeliveryQuery{{}, {Status: sender.StatusPending}, {Subscriber: a.subscriber}} {
			var got []string
			q.Limit = 200
			for {
				page, next, err := a.store.Deliveries(t.Context(), q)
				require.NoError(t, err)
				for _, d := range page {
					got = append(got, fmt.Sprintf("%s %s", d.Event.ID, d.Subscription))
				}
				if q.Cursor = next; next == "" {
					break
				}
			}
			require.Equal(t, want, got)
		}
	}
}

// Deliveries that a resume has made due go before later ones, also if no dispatcher has
// seen the resume yet.
func TestAheadAfterResume(t *testing.T) {
	a := newAsking(t, 1)
	s := a.store
	a.publish(3)
	a.expand()
	b := batchOf(nil, 10)
	_, claims, err := s.Step(t.Context(), dispatch.ExpandParams{}, b)
	require.NoError(t, err)
	require.Len(t, claims.Claimed, 3)
	b = batchOf(claims.Claimed, 0)
	b.Decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Hour), Health: h}
	}
	_, _, err = s.Step(t.Context(), dispatch.ExpandParams{}, b)
	require.NoError(t, err)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		if err := s.HoldSubscriptionTx(t.Context(), tx, "wsub_0", sender.SubscriptionPaused, ""); err != nil {
			return err
		}
		return s.ResumeSubscriptionTx(t.Context(), tx, "wsub_0", sender.Resume{})
	}))
	a.publish(1)
	pending := func() int {
		a.expand()
		all, _, err := s.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
		require.NoError(t, err)
		require.Len(t, all, 1)
		facts, err := s.Facts(t.Context(), all[0].ID)
		require.NoError(t, err)
		return facts.Ahead
	}
	require.Equal(t, 3, pending())
	_, claims, err = s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 1))
	require.NoError(t, err)
	require.Len(t, claims.Claimed, 1)
	require.Equal(t, 2, pending(), "one of them was claimed")
}

// An event is in the list of the time in which it was published, however long its
// transaction stayed open.
func TestPublishedInAnOldTransaction(t *testing.T) {
	a := newAsking(t, 1)
	ctx, s := t.Context(), a.store
	open, err := a.all.pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = open.Rollback(context.WithoutCancel(ctx)) }()
	old := a.event("a.b")
	_, err = s.PublishTx(ctx, open, []sender.Draft{old})
	require.NoError(t, err)
	a.advance(time.Hour)
	a.publish(3)
	a.expand()
	require.NoError(t, open.Commit(ctx))
	a.publish(2)
	a.expand()

	deliveries, next, err := s.Deliveries(ctx, history.DeliveryQuery{Until: start.Add(time.Second)})
	require.NoError(t, err)
	require.Len(t, deliveries, 1)
	require.Equal(t, old.ID, deliveries[0].Event.ID)
	require.Empty(t, next)
	deliveries, _, err = s.Deliveries(ctx, history.DeliveryQuery{Since: start.Add(time.Second)})
	require.NoError(t, err)
	require.Len(t, deliveries, 5)
	events, _, err := s.Events(ctx, history.EventQuery{Until: start.Add(time.Second)})
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, old.ID, events[0].ID)
}

// Several dispatchers of a process may use one store: each record of theirs is counted
// once.
func TestRollupsOfSeveralDispatchers(t *testing.T) {
	const dispatchers, each = 4, 25
	a := newAsking(t, 2*dispatchers)
	s := a.store
	a.publish(each)
	a.expand()
	var all sync.WaitGroup
	for range dispatchers {
		all.Go(func() {
			b := dispatch.Batch{Decide: dispatch.Policy{}.Decide}
			for {
				b.Claim.Lease = time.Minute
				for lane := range b.Claim.Lanes {
					b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: 3, PerSubscriber: 3, PerSubscription: 3}
				}
				_, out, err := s.Step(t.Context(), dispatch.ExpandParams{}, b)
				if err != nil {
					t.Error(err)
					return
				}
				if len(out.Claimed) == 0 && out.NextDue.After(out.Now) {
					return
				}
				b.Results = nil
				for i := range out.Claimed {
					c := &out.Claimed[i]
					b.Results = append(b.Results, dispatch.Result{Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: time.Millisecond, StatusCode: 204})
				}
			}
		})
	}
	all.Wait()
	counts, err := s.Counts(t.Context())
	require.NoError(t, err)
	require.Zero(t, counts.Live)
	rollups, err := s.Rollups(t.Context(), start, start.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, rollups, 1)
	require.Equal(t, int64(2*dispatchers*each), rollups[0].Delivered)
}

// The count of events that are not expanded is never too low, also if there are many.
func TestCountsOfManyUnexpanded(t *testing.T) {
	const n = 10_500
	a := newAsking(t, 1)
	_, err := a.all.pool.Exec(t.Context(), `INSERT INTO "`+a.schema+`".surehook_outbox (event, patterns, subscriber, subscription, created_at, notice, bytes)
		SELECT n, '*', 0, 0, now(), false, 2 FROM generate_series(1, $1::int) AS n`, n)
	require.NoError(t, err)
	counts, err := a.store.Counts(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(n), counts.Unexpanded)
}
