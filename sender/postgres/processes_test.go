package postgres_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// loops runs fn twice with each of some stores.
func loops(t *testing.T, stores []*pgxStore, fn func(ctx context.Context, s *pgxStore) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range slices.Concat(stores, stores) {
		g.Go(func() error { return fn(ctx, s) })
	}
	require.NoError(t, g.Wait())
}

// Two stores, each with a pool of its own, as two processes have, and two loops each.
func TestProcessesClaimEachDeliveryOnce(t *testing.T) {
	const events = 1500
	p := newPlace(t)
	first := p.store(t)
	register(t, first, 7, 1, sender.Settings{})
	publish(t, first, events, 7)

	var mu sync.Mutex
	times := map[dispatch.DeliveryKey]int{}
	made, recorded := 0, 0
	loops(t, []*pgxStore{first, p.store(t)}, func(ctx context.Context, s *pgxStore) error {
		var claimed []dispatch.Claimed
		for done := false; !done; {
			x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 64, Deliveries: 64}, dispatch.Batch{})
			if err != nil {
				return err
			}
			_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(claimed, 50))
			if err != nil {
				return err
			}
			claimed = c.Claimed
			mu.Lock()
			made += x.Deliveries
			recorded += len(c.Recorded)
			for _, c := range claimed {
				times[c.Key]++
			}
			done = recorded == events
			mu.Unlock()
		}
		return nil
	})
	require.Equal(t, events, made, "deliveries made")
	require.Len(t, times, events, "deliveries claimed")
	for key, n := range times {
		require.Equal(t, 1, n, "claims of %v", key)
	}
	require.Equal(t, events, p.count(t, `SELECT count(*) FROM {}.surehook_attempts WHERE number = 1 AND class = ''`))
	require.Equal(t, events, p.count(t, `SELECT count(*) FROM {}.surehook_attempts`))
	require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_ended`))
	require.Equal(t, events, p.count(t, `SELECT max(position) FROM {}.surehook_feed`), "positions have no gaps")
	p.settled(t)
}

// A process that is slower than its lease loses the delivery to another one.
func TestLeaseIsTakenOverByAnotherProcess(t *testing.T) {
	ctx, p := t.Context(), newPlace(t)
	slow, other := p.frozen(t), p.frozen(t)
	register(t, slow, 1, 1, sender.Settings{})
	publish(t, slow, 1, 1)
	expandAll(t, slow)

	lost := exchange(t, slow, batchOf(nil, 10))
	require.Len(t, lost.Claimed, 1)
	p.advance(t, time.Minute-time.Microsecond)
	require.Empty(t, exchange(t, other, batchOf(nil, 10)).Claimed, "before the lease has ended")
	p.advance(t, time.Microsecond)
	c := exchange(t, other, batchOf(nil, 10))
	require.Len(t, c.Interrupted, 1)
	require.Equal(t, sender.ClassInterrupted, c.Interrupted[0].Result.Class)
	require.Len(t, c.Claimed, 1)
	require.Equal(t, lost.Claimed[0].Key, c.Claimed[0].Key)
	require.Equal(t, 2, c.Claimed[0].Number)

	late := exchange(t, slow, batchOf(lost.Claimed, 10))
	require.Len(t, late.Recorded, 1)
	require.True(t, late.Recorded[0].Lost, "the late result")
	require.Empty(t, late.Claimed)
	list, _, err := slow.Deliveries(ctx, history.DeliveryQuery{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.True(t, list[0].InFlight, "the late result must not end the other's attempt")

	in := exchange(t, other, batchOf(c.Claimed, 10))
	require.False(t, in.Recorded[0].Lost)
	d, err := other.Delivery(ctx, list[0].ID)
	require.NoError(t, err)
	require.Equal(t, sender.StatusDelivered, d.Status)
	require.Len(t, d.Attempts, 2)
	require.Equal(t, sender.ClassInterrupted, d.Attempts[0].Class)
	require.Equal(t, sender.ClassNone, d.Attempts[1].Class)
	p.settled(t)
}

// A lost process may leave more leases behind than one claim takes. The others stay
// due: they do not wait for leases that end later.
func TestLostLeasesAreAllTakenOver(t *testing.T) {
	const lost = 10
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, 1, sender.Settings{})
	publish(t, s, lost+1, 1)
	expandAll(t, s)
	require.Len(t, exchange(t, s, batchOf(nil, lost)).Claimed, lost)
	p.advance(t, 30*time.Second)
	require.Len(t, exchange(t, s, batchOf(nil, 1)).Claimed, 1, "this lease ends later")
	p.advance(t, 31*time.Second)
	interrupted := 0
	for range lost { // no time passes
		c := exchange(t, s, batchOf(nil, 3))
		interrupted += len(c.Interrupted)
		p.consistent(t)
		if interrupted == lost {
			break
		}
		require.False(t, c.NextDue.After(c.Now), "%d of %d were taken over: others are due", interrupted, lost)
	}
	require.Equal(t, lost, interrupted)
}

// A subscriber that had a turn goes to the tail. Its other subscriptions, which were
// due before that, get their turns all the same.
func TestManySubscriptionsOfOneSubscriberAreAllServed(t *testing.T) {
	const subscriptions = 30
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, subscriptions, sender.Settings{})
	publish(t, s, 1, 1)
	require.Equal(t, subscriptions, expandAll(t, s))
	n := 0
	for range subscriptions {
		p.advance(t, time.Millisecond) // each claim is later than the due times
		c := exchange(t, s, batchOf(nil, 10))
		n += len(c.Claimed)
		p.consistent(t)
	}
	require.Equal(t, subscriptions, n, "deliveries claimed")
}

// Two processes together keep within a subscription's limit of attempts in flight.
func TestMaxInFlightHoldsAcrossProcesses(t *testing.T) {
	const events, limit = 40, 3
	p := newPlace(t)
	first := p.store(t)
	register(t, first, 1, 1, sender.Settings{MaxInFlight: limit})
	publish(t, first, events, 1)
	expandAll(t, first)
	stores := []*pgxStore{first, p.store(t)}
	for recorded := 0; recorded < events; {
		var mu sync.Mutex
		var inFlight []dispatch.Claimed
		loops(t, stores, func(ctx context.Context, s *pgxStore) error {
			_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 2))
			mu.Lock()
			defer mu.Unlock()
			inFlight = append(inFlight, c.Claimed...)
			return err
		})
		require.NotEmpty(t, inFlight)
		require.LessOrEqual(t, len(inFlight), limit)
		more := exchange(t, first, batchOf(inFlight[:1], 2)).Claimed
		require.LessOrEqual(t, len(inFlight)-1+len(more), limit)
		inFlight = append(inFlight[1:], more...)
		exchange(t, first, batchOf(inFlight, 0))
		recorded += 1 + len(inFlight)
	}
	p.settled(t)
}

// Two processes together keep within a subscription's rate.
func TestRateHoldsAcrossProcesses(t *testing.T) {
	const events, rate, seconds = 300, 20, 5 // two at once
	p := newPlace(t)
	first := p.frozen(t)
	register(t, first, 1, 1, sender.Settings{Rate: rate})
	publish(t, first, events, 1)
	expandAll(t, first)
	stores := []*pgxStore{first, p.frozen(t)}
	var granted atomic.Int64
	for at := range seconds * 10 {
		loops(t, stores, func(ctx context.Context, s *pgxStore) error {
			for range 3 {
				_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 2))
				if err != nil {
					return err
				}
				granted.Add(int64(len(c.Claimed)))
			}
			return nil
		})
		require.LessOrEqual(t, granted.Load(), int64(rate*at/10+rate/10), "attempts begun after %d tenths of a second", at)
		p.advance(t, time.Second/10)
	}
	require.GreaterOrEqual(t, granted.Load(), int64(rate*(seconds-1)), "what the rate grants is used")
	p.consistent(t)
}
