package memory_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

func newStore(t *testing.T, cfg *memory.Config) *memory.Store {
	t.Helper()
	store, err := memory.New(cfg)
	require.NoError(t, err)
	return store
}

func TestTransactionsTakeTurnsInTheOrderOfTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		tx, err := store.Begin(t.Context())
		require.NoError(t, err)
		var order []int
		for i := range 10 {
			go func() {
				_ = store.InTx(t.Context(), func(*memory.Tx) error { order = append(order, i); return nil })
			}()
			synctest.Wait() // the call waits for its turn
		}
		require.Empty(t, order)
		require.NoError(t, tx.Commit())
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

// A call that would wait for itself is refused at once, in a bubble in which a wait would be a
// deadlock.
func TestCallsInsideInTxAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, other := newStore(t, nil), newStore(t, nil)
		pub, err := sender.NewPublisher(store, nil)
		require.NoError(t, err)
		elsewhere, err := sender.NewPublisher(other, nil)
		require.NoError(t, err)
		event := sender.Event{Type: "a.b", Object: sender.Object{Type: "thing", ID: "1"}}
		require.NoError(t, pub.InTx(t.Context(), func(tx *memory.Tx) error {
			_, err := pub.Publish(context.Background(), event)
			require.ErrorIs(t, err, sender.ErrInvalid)
			require.ErrorContains(t, err, "use PublishTx with the transaction that you have")
			require.ErrorIs(t, pub.InTx(t.Context(), func(*memory.Tx) error { return nil }), sender.ErrInvalid)
			_, err = elsewhere.Publish(t.Context(), event)
			require.NoError(t, err, "another store's transactions are others")
			_, err = pub.PublishTx(t.Context(), tx, event)
			return err
		}))
		ref, err := pub.Publish(t.Context(), event)
		require.NoError(t, err)
		require.EqualValues(t, 2, ref.Version, "the refused one has left nothing")
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		tx, err := store.Begin(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err = store.Begin(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		_, err = store.Delivery(ctx, "dlv_x_1", history.AttemptQuery{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, tx.Rollback())
		require.NoError(t, store.InTx(t.Context(), func(*memory.Tx) error { return nil }))
	})
}

func TestSignalsReachABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		woken := false
		go func() { <-store.Woken(); woken = true }()
		synctest.Wait()
		require.False(t, woken)
		store.Wake()
		synctest.Wait()
		require.True(t, woken)
	})
}

func TestEndedTransactions(t *testing.T) {
	store := newStore(t, nil)
	for _, end := range []func(*memory.Tx) error{(*memory.Tx).Commit, (*memory.Tx).Rollback} {
		tx, err := store.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, end(tx))
		require.ErrorIs(t, tx.Commit(), memory.ErrEnded)
		require.ErrorIs(t, tx.Rollback(), memory.ErrEnded)
		_, err = store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_1", Type: "a"}})
		require.ErrorIs(t, err, memory.ErrEnded)
	}
	err := store.InTx(t.Context(), func(tx *memory.Tx) error { return tx.Rollback() })
	require.ErrorIs(t, err, memory.ErrEnded, "InTx must not report a commit that was not made")
}

func TestForeignTransactions(t *testing.T) {
	store, other := newStore(t, nil), newStore(t, nil)
	tx, err := other.Begin(t.Context())
	require.NoError(t, err)
	for _, foreign := range []*memory.Tx{nil, tx} {
		_, err := store.PublishTx(t.Context(), foreign, []sender.Draft{{ID: "evt_1", Type: "a"}})
		require.ErrorIs(t, err, sender.ErrInvalid)
		_, err = store.SubscriberTx(t.Context(), foreign, "sub_1")
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
}

// A test's FailNow inside InTx ends the goroutine without a panic.
func TestInTxRollsBackWhenItsGoroutineEnds(t *testing.T) {
	store := newStore(t, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = store.InTx(t.Context(), func(tx *memory.Tx) error {
			_, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_1", Type: "a", Object: sender.Object{Type: "a", ID: "1"}}})
			if err != nil {
				t.Error(err)
			}
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	x, _, err := store.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	require.Zero(t, x)
}

// Rows that PublishTx wrote before it failed are gone even if the caller goes on.
func TestAFailedCallLeavesNothingInItsTransaction(t *testing.T) {
	store := newStore(t, nil)
	obj := sender.Object{Type: "thing", ID: "1"}
	err := store.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := store.PublishTx(t.Context(), tx, []sender.Draft{
			{ID: "evt_1", Type: "a", Object: obj}, {ID: "evt_2", Type: "a", Object: obj, Version: 1},
		})
		require.ErrorIs(t, err, sender.ErrVersion)
		refs, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_1", Type: "a", Object: obj}})
		require.NoError(t, err)
		require.Equal(t, []sender.Ref{{ID: "evt_1", Version: 1}}, refs)
		return nil
	})
	require.NoError(t, err)
}

// claimed sets up a store with deliveries in flight, to one subscription each.
func claimed(t *testing.T, store *memory.Store, n int) []dispatch.Claimed {
	t.Helper()
	err := store.InTx(t.Context(), func(tx *memory.Tx) error {
		err := store.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_1"}, nil)
		for i := range n {
			id := string(rune('a' + i))
			err = errors.Join(err, store.CreateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: id, Subscriber: "sub_1", EventTypes: []string{"*"}}))
		}
		_, err2 := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_1", Type: "a", Object: sender.Object{Type: "a", ID: "1"}}})
		return errors.Join(err, err2)
	})
	require.NoError(t, err)
	_, _, err = store.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	_, c, err := store.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{Claim: all})
	require.NoError(t, err)
	require.Len(t, c.Claimed, n)
	return c.Claimed
}

var all = dispatch.ClaimParams{Lease: time.Minute, Token: 1, Lanes: [sender.Lanes]dispatch.LaneParams{
	{Slots: 100, PerSubscriber: 100, PerSubscription: 100},
	{Slots: 100, PerSubscriber: 100, PerSubscription: 100},
	{Slots: 100, PerSubscriber: 100, PerSubscription: 100},
}}

// If something goes wrong in the middle of a batch, all that was done before in it is taken
// back, and the lines are as they were.
func TestABatchThatFailsChangesNothing(t *testing.T) {
	delivered := dispatch.Decision{Status: sender.StatusDelivered, Health: sender.Health{Lane: sender.LaneProven}}
	for name, fail := range map[string]func() dispatch.Decision{
		"panic":  func() dispatch.Decision { panic("decide") },
		"status": func() dispatch.Decision { return dispatch.Decision{Status: "held"} },
		"lane": func() dispatch.Decision {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: sender.Health{Lane: 7}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			store := newStore(t, &memory.Config{Now: func() time.Time { return now }})
			c := claimed(t, store, 4)
			now = now.Add(2 * time.Minute)
			before, _, err := store.Deliveries(t.Context(), history.DeliveryQuery{})
			require.NoError(t, err)

			calls := 0
			batch := dispatch.Batch{
				Results: []dispatch.Result{{Key: c[0].Key, Token: 1, Number: 1}},
				Decide: func(_ dispatch.Live, h sender.Health, r dispatch.Result, at time.Time) dispatch.Decision {
					switch calls++; calls {
					case 1:
						return delivered
					case 2: // a lost attempt: goes on
						return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: at, Health: h}
					}
					return fail()
				},
				Claim: all,
			}
			func() {
				defer func() { _ = recover() }()
				_, _, err := store.Step(t.Context(), dispatch.ExpandParams{}, batch)
				require.ErrorIs(t, err, sender.ErrInvalid)
			}()
			require.Equal(t, 3, calls)

			after, _, err := store.Deliveries(t.Context(), history.DeliveryQuery{})
			require.NoError(t, err)
			require.Equal(t, before, after)
			batch.Results = nil
			batch.Decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, at time.Time) dispatch.Decision {
				return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: at, Health: h}
			}
			_, again, err := store.Step(t.Context(), dispatch.ExpandParams{}, batch)
			require.NoError(t, err)
			require.Len(t, again.Claimed, 4)
			require.Len(t, again.Interrupted, 4)
		})
	}
}

func TestABatchNeedsDecide(t *testing.T) {
	store := newStore(t, nil)
	c := claimed(t, store, 1)
	_, _, err := store.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{Results: []dispatch.Result{{Key: c[0].Key, Token: 1}}})
	require.ErrorIs(t, err, sender.ErrInvalid)
}

// A caller may change the values that it was given, or gave: the store does not see it.
func TestTheStoreKeepsItsOwnCopies(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := newStore(t, &memory.Config{Now: func() time.Time { return now }})
	c := claimed(t, store, 1)[0]
	require.NotEmpty(t, c.Body)
	c.Body[0] ^= 0xff
	snippet := []byte("snippet")
	_, _, err := store.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{
		Results: []dispatch.Result{{Key: c.Key, Token: 1, Snippet: snippet}},
		Decide: func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision {
			return dispatch.Decision{Status: sender.StatusDelivered}
		},
	})
	require.NoError(t, err)
	snippet[0] = 'X'
	for range 2 {
		page, _, err := store.Deliveries(t.Context(), history.DeliveryQuery{})
		require.NoError(t, err)
		d, err := store.Delivery(t.Context(), page[0].ID, history.AttemptQuery{Limit: 100})
		require.NoError(t, err)
		require.Equal(t, "1", string(d.Body))
		require.Equal(t, "snippet", string(d.Attempts[0].Snippet))
		d.Body[0], d.Attempts[0].Snippet[0] = 'X', 'X'
	}
}

func TestVersionsEndWhereJSONIsExact(t *testing.T) {
	store := newStore(t, nil)
	obj := sender.Object{Type: "thing", ID: "1"}
	err := store.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_1", Type: "a", Object: obj, Version: 1<<53 - 1}})
		require.NoError(t, err)
		_, err = store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_2", Type: "a", Object: obj}})
		return err
	})
	require.ErrorIs(t, err, sender.ErrVersion)
}

func TestASubscriptionIsAddressedUnderItsOwner(t *testing.T) {
	store := newStore(t, nil)
	claimed(t, store, 1)
	err := store.InTx(t.Context(), func(tx *memory.Tx) error {
		if err := store.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_2"}, nil); err != nil {
			return err
		}
		_, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_2", Type: "a", Subscriber: "sub_2", Subscription: "a"}})
		return err
	})
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// An event that nobody would ever get is not accepted.
func TestAClosingSubscriptionIsNotAddressed(t *testing.T) {
	store := newStore(t, nil)
	claimed(t, store, 1)
	err := store.InTx(t.Context(), func(tx *memory.Tx) error {
		if err := store.CloseSubscriptionTx(t.Context(), tx, "a"); err != nil {
			return err
		}
		_, err := store.PublishTx(t.Context(), tx, []sender.Draft{{ID: "evt_2", Type: "a", Subscriber: "sub_1", Subscription: "a"}})
		return err
	})
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// Equal times are equal values, so that users can compare with ==.
func TestTimesAreUTCWithoutMonotonicReading(t *testing.T) {
	store := newStore(t, &memory.Config{Now: func() time.Time { return time.Now().In(time.FixedZone("", 3600)) }})
	_, c, err := store.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{})
	require.NoError(t, err)
	require.Equal(t, c.Now.Round(0).UTC(), c.Now)
	require.Equal(t, time.UTC, c.Now.Location())
}
