package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

// The same calls have the same results, whatever was rolled back between them.
func TestTheOrderOfClaimsFollowsFromTheCalls(t *testing.T) {
	quiet := claimOrder(t, func(*memory.Store) {})
	require.Len(t, quiet, 7*12)
	require.Empty(t, cmp.Diff(quiet, claimOrder(t, func(*memory.Store) {})))

	changed := errors.New("rolled back")
	noisy := claimOrder(t, func(store *memory.Store) {
		err := store.InTx(t.Context(), func(tx *memory.Tx) error {
			for i := 1; i < 7; i += 2 {
				require.NoError(t, store.DeleteSubscriptionTx(t.Context(), tx, fmt.Sprintf("wsub_%d", i)))
			}
			require.NoError(t, store.CreateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: "wsub_new", Subscriber: "sub_0", EventTypes: []string{"*"}}))
			_, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_new", Type: "a", Object: sender.Object{Type: "a", ID: "1"}}})
			require.NoError(t, err)
			return changed
		})
		require.ErrorIs(t, err, changed)
		func() {
			defer func() { _ = recover() }()
			n := 0
			batch := dispatch.Batch{Claim: all, Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, at time.Time) dispatch.Decision {
				if n++; n == 3 { // reached in each claim that finds anything
					panic("in the middle of a claim")
				}
				return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: at, Health: sender.Health{Lane: sender.Lane(n % sender.Lanes)}}
			}}
			batch.Claim.Lease = 0 // what it claims is lost at once
			_, _, _ = store.Step(t.Context(), dispatch.ExpandParams{}, batch)
		}()
	})
	require.Empty(t, cmp.Diff(quiet, noisy))
}

// claimOrder is the order in which the deliveries of 7 subscriptions of 3
// subscribers are claimed, if between happens before each claim.
func claimOrder(t *testing.T, between func(*memory.Store)) (order []dispatch.DeliveryKey) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := newStore(t, &memory.Config{Now: func() time.Time { return now }})
	err := store.InTx(t.Context(), func(tx *memory.Tx) (err error) {
		for i := range 3 {
			err = errors.Join(err, store.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: fmt.Sprintf("sub_%d", i)}, nil))
		}
		for i := range 7 {
			s := sender.Subscription{ID: fmt.Sprintf("wsub_%d", i), Subscriber: fmt.Sprintf("sub_%d", i%3), EventTypes: []string{"*"}}
			err = errors.Join(err, store.CreateSubscriptionTx(t.Context(), tx, s))
		}
		for i := range 12 {
			_, err2 := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: fmt.Sprintf("evt_%d", i), Type: "a", Object: sender.Object{Type: "a", ID: "1"}}})
			err = errors.Join(err, err2)
		}
		return err
	})
	require.NoError(t, err)
	_, _, err = store.Step(t.Context(), dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	for {
		between(store)
		_, c, err := store.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{Claim: dispatch.ClaimParams{
			Lease: time.Minute, Lanes: [sender.Lanes]dispatch.LaneParams{{Slots: 5, PerSubscriber: 4, PerSubscription: 2}},
		}})
		require.NoError(t, err)
		if len(c.Claimed) == 0 {
			return order
		}
		for _, d := range c.Claimed {
			order = append(order, d.Key)
		}
	}
}

// A sweep ends the deliveries of a deleted subscription in the same order each time, those too
// that wait in a line.
func TestTheOrderOfASweepFollowsFromTheCalls(t *testing.T) {
	t.Parallel()
	swept := func() (ids []string) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		store := newStore(t, &memory.Config{Now: func() time.Time { return now }})
		sub := sender.Subscription{ID: "wsub_1", Subscriber: "sub_1", EventTypes: []string{"*"}, Settings: sender.Settings{Order: sender.OrderObject}}
		require.NoError(t, store.InTx(t.Context(), func(tx *memory.Tx) error {
			err := errors.Join(store.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_1"}, nil), store.CreateSubscriptionTx(t.Context(), tx, sub))
			for i := range 12 {
				_, err2 := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: fmt.Sprintf("evt_%02d", i), Type: "a", Object: sender.Object{Type: "a", ID: "1"}}})
				err = errors.Join(err, err2)
			}
			return err
		}))
		_, _, err := store.Step(t.Context(), dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
		require.NoError(t, err)
		require.NoError(t, store.InTx(t.Context(), func(tx *memory.Tx) error { return store.DeleteSubscriptionTx(t.Context(), tx, sub.ID) }))
		for _, ended := range []int{4, 8} {
			out, err := store.Sweep(t.Context(), dispatch.SweepParams{Limit: ended})
			require.NoError(t, err)
			require.Equal(t, ended, out.Ended)
			now = now.Add(time.Hour)
		}
		_, err = store.Prune(t.Context(), dispatch.PruneParams{Delivered: now.Add(-90 * time.Minute), Limit: 100})
		require.NoError(t, err)
		page, _, err := store.Deliveries(t.Context(), history.DeliveryQuery{Limit: 100})
		require.NoError(t, err)
		for _, d := range page {
			ids = append(ids, d.Event.ID)
		}
		return ids
	}
	first := swept()
	require.Len(t, first, 8)
	for range 5 {
		require.Equal(t, first, swept())
	}
}
