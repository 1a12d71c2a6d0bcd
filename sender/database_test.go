package sender_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// brokenStore fails as told.
type brokenStore struct {
	sender.DispatchStore
	failChecks  atomic.Int64 // so many checks fail
	failRecords atomic.Int64 // so many batches with results fail
	after       bool         // they fail after the commit
}

func (s *brokenStore) Check(ctx context.Context) error {
	if s.failChecks.Add(-1) >= 0 {
		return errAway
	}
	return s.DispatchStore.Check(ctx)
}

func (s *brokenStore) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	if len(b.Results) > 0 && s.failRecords.Add(-1) >= 0 {
		if s.after {
			if _, err := s.DispatchStore.RecordAndClaim(ctx, b); err != nil {
				return sender.Claims{}, err
			}
		}
		return sender.Claims{}, errAway
	}
	return s.DispatchStore.RecordAndClaim(ctx, b)
}

// A database that fails loses no result, and costs no second POST while the
// lease lasts.
func TestDatabaseFailsWhileRecording(t *testing.T) {
	for name, after := range map[string]bool{"before the commit": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				endpoint := sendertest.NewRoundTripper()
				b.subscribe("sub_a", "http://endpoint/")
				store := &brokenStore{DispatchStore: b.store, after: after}
				store.failRecords.Store(4)
				b.start(b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: endpoint}))
				b.publish("sub_a")
				time.Sleep(time.Minute)
				require.Equal(t, sender.StatusDelivered, b.delivery().Status)
				require.Len(t, b.delivery().Attempts, 1)
				require.Len(t, endpoint.Requests(), 1)
				require.Negative(t, store.failRecords.Load(), "it did fail")
			})
		})
	}
}

// A dispatcher that starts while its database is away begins when it is there.
func TestDatabaseAwayAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.subscribe("sub_a", "http://endpoint/")
		b.publish("sub_a")
		store := &brokenStore{DispatchStore: b.store}
		store.failChecks.Store(1)
		d := b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: sendertest.NewRoundTripper()})
		_, err := d.RunOnce(t.Context())
		require.ErrorIs(t, err, errAway, "one that is to do what is due now does not wait")

		store.failChecks.Store(10)
		stop := b.start(d)
		time.Sleep(time.Minute)
		require.Equal(t, sender.StatusDelivered, b.delivery().Status)
		require.NoError(t, stop())

		store.failChecks.Store(1 << 40)
		stop = b.start(d)
		time.Sleep(time.Minute)
		require.Greater(t, store.failChecks.Load(), int64(1<<40-30), "it leaves the database alone for longer and longer")
		began := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(began), "it ends while it waits")
	})
}
