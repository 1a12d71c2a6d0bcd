package sqlite_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/sqlite"
)

// Two stores on one file, each with a pool of its own, as two processes have.
func TestTwoProcessesClaimEachDeliveryOnce(t *testing.T) {
	const events = 2000
	p := path(t)
	db := open(t, p, fit)
	stores := []*sqlite.Store{newStore(t, db, time.Now), newStore(t, open(t, p, fit), time.Now)}
	publish(t, stores[0], events, 0, register(t, stores[0], 7))

	var mu sync.Mutex
	times := map[dispatch.DeliveryKey]int{}
	made := 0
	var g errgroup.Group
	for _, s := range stores {
		g.Go(func() error {
			var claimed []dispatch.Claimed
			for {
				x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 64, Deliveries: 64}, dispatch.Batch{})
				if err != nil {
					return err
				}
				_, c, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(claimed, 50))
				if err != nil {
					return err
				}
				claimed = c.Claimed
				mu.Lock()
				made += x.Deliveries
				for _, c := range claimed {
					times[c.Key]++
				}
				mu.Unlock()
				if x.Events == 0 && len(claimed) == 0 {
					return nil
				}
			}
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, events, made, "deliveries made")
	require.Len(t, times, events, "deliveries claimed")
	for key, n := range times {
		require.Equal(t, 1, n, "claims of %v", key)
	}
	require.Equal(t, events, count(t, db, `SELECT count(*) FROM surehook_attempts WHERE number = 1 AND class = ''`))
	require.Equal(t, events, count(t, db, `SELECT count(*) FROM surehook_attempts`))
	for _, table := range []string{"pending", "leases", "waiting", "ended"} {
		require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_`+table), table)
	}
}

// A process that is slower than its lease loses the delivery to another one.
func TestLeaseIsTakenOverByAnotherProcess(t *testing.T) {
	ctx, p, clock := t.Context(), path(t), newClock()
	slow, other := newStore(t, open(t, p, fit), clock.now), newStore(t, open(t, p, fit), clock.now)
	publish(t, slow, 1, 0, register(t, slow, 1))
	expandAll(t, slow)

	_, lost, err := slow.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Len(t, lost.Claimed, 1)
	clock.advance(time.Minute - time.Microsecond)
	_, c, err := other.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Empty(t, c.Claimed, "before the lease has ended")
	clock.advance(time.Microsecond)
	_, c, err = other.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Len(t, c.Claimed, 1)
	require.Equal(t, lost.Claimed[0].Key, c.Claimed[0].Key)
	require.Equal(t, 2, c.Claimed[0].Number)
	require.Len(t, c.Interrupted, 1)
	require.Equal(t, sender.ClassInterrupted, c.Interrupted[0].Result.Class)

	_, late, err := slow.Step(ctx, dispatch.ExpandParams{}, batchOf(lost.Claimed, 10))
	require.NoError(t, err)
	require.Len(t, late.Recorded, 1)
	require.True(t, late.Recorded[0].Lost, "the late result")
	require.Empty(t, late.Claimed)
	list, _, err := slow.Deliveries(ctx, history.DeliveryQuery{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.True(t, list[0].InFlight, "the late result must not end the other's attempt")

	_, in, err := other.Step(ctx, dispatch.ExpandParams{}, batchOf(c.Claimed, 10))
	require.NoError(t, err)
	require.False(t, in.Recorded[0].Lost)
	d, err := other.Delivery(ctx, list[0].ID)
	require.NoError(t, err)
	require.Equal(t, sender.StatusDelivered, d.Status)
	require.Len(t, d.Attempts, 2)
	require.Equal(t, sender.ClassInterrupted, d.Attempts[0].Class)
	require.Equal(t, sender.ClassNone, d.Attempts[1].Class)
}
