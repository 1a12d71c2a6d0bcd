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
