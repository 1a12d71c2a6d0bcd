package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

var errAway = errors.New("the database is away")

// brokenStore fails as told.
type brokenStore struct {
	dispatch.Store
	failChecks  atomic.Int64 // as many checks fail
	failSteps   atomic.Int64 // as many steps that may expand fail
	failRecords atomic.Int64 // as many batches with results fail
	after       bool         // they fail after the commit
	failSweeps  atomic.Int64 // as many sweeps fail
}

func (s *brokenStore) Check(ctx context.Context) error {
	if s.failChecks.Add(-1) >= 0 {
		return errAway
	}
	return s.Store.Check(ctx)
}

func (s *brokenStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if s.failSweeps.Add(-1) >= 0 {
		return dispatch.Swept{}, errAway
	}
	return s.Store.Sweep(ctx, p)
}

func (s *brokenStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if p.Events > 0 && s.failSteps.Add(-1) >= 0 {
		return dispatch.Expanded{}, dispatch.Claims{}, errAway
	}
	if len(b.Results) > 0 && s.failRecords.Add(-1) >= 0 {
		if s.after {
			if _, _, err := s.Store.Step(ctx, p, b); err != nil {
				return dispatch.Expanded{}, dispatch.Claims{}, err
			}
		}
		return dispatch.Expanded{}, dispatch.Claims{}, errAway
	}
	return s.Store.Step(ctx, p, b)
}

// A database that fails loses no result, and costs no second POST while the
// lease lasts.
func TestDatabaseFailsWhileRecording(t *testing.T) {
	for name, after := range map[string]bool{"before the commit": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper()
				b.Subscribe("sub_a", "http://endpoint/")
				store := &brokenStore{Store: b.Store, after: after}
				store.failRecords.Store(4)
				log := &logged{}
				b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Logger: log.logger(slog.LevelWarn)}))
				b.Publish("sub_a")
				time.Sleep(time.Minute)
				require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
				require.Len(t, b.Delivery().Attempts, 1)
				require.Len(t, endpoint.Requests(), 1)
				require.Negative(t, store.failRecords.Load(), "it did fail")
				told := log.of(t, "a result changed nothing: its lease was lost before, or a step that seemed to fail has recorded it")
				require.Len(t, told, map[bool]int{true: 1}[after], "nobody reads that a result is lost which was recorded")
			})
		})
	}
}

// A database that fails is left alone for longer and longer, whatever it hints at, and each
// time anew.
func TestFailingDatabaseIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store, endpoint := &brokenStore{Store: b.Store}, sendertest.NewRoundTripper()
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint}))
		for n := range 2 {
			store.failSteps.Store(1000)
			b.Publish("sub_a")
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				b.Store.Wake()
			}
			require.EqualValues(t, 8+(60-6)/5, 1000-store.failSteps.Load(), "after 50 ms, doubled up to 5 s")
			store.failSteps.Store(0)
			time.Sleep(10 * time.Second)
			require.Len(t, endpoint.Requests(), n+1)
		}
	})
}

// A dispatcher that starts while its database is away begins when the database is back.
func TestDatabaseAwayAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		store := &brokenStore{Store: b.Store}
		store.failChecks.Store(1)
		d := b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()})
		_, err := d.RunOnce(t.Context())
		require.ErrorIs(t, err, errAway, "one that is to do what is due now does not wait")

		store.failChecks.Store(10)
		stop := b.Start(d)
		time.Sleep(time.Minute)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
		require.NoError(t, stop())

		store.failChecks.Store(1 << 40)
		stop = b.Start(d)
		time.Sleep(time.Minute)
		require.Greater(t, store.failChecks.Load(), int64(1<<40-30), "it leaves the database alone for longer and longer")
		began := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(began), "it ends while it waits")
	})
}
