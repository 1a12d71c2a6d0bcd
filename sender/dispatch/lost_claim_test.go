package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// lostAnswerStore commits a claim, and loses the answer, when it is asked to.
type lostAnswerStore struct {
	dispatch.Store
	lose func(c dispatch.Claims) bool
}

func (s *lostAnswerStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	if err == nil && s.lose(c) {
		return dispatch.Expanded{}, dispatch.Claims{}, errors.New("the connection is gone")
	}
	return x, c, err
}

// Deliveries that a process has claimed without knowing it do not wait for the end of the
// lease, and no attempt of them is counted. This holds where there is no other process, if
// the process was known before, and if it holds something else all the time.
func TestClaimWhoseAnswerWasLost(t *testing.T) {
	for name, c := range map[string]struct {
		nth  int64
		busy bool
		idle time.Duration
	}{"the first": {nth: 1}, "a later one": {nth: 2}, "of one that is busy": {nth: 2, busy: true}, "of one that rests for long": {nth: 1, idle: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				b.Subscribe("sub_a", "http://endpoint/")
				b.Subscribe("sub_slow", "http://slow/")
				var claims atomic.Int64
				store := &lostAnswerStore{b.Store, func(claimed dispatch.Claims) bool {
					return len(claimed.Claimed) > 0 && claims.Add(int64(len(claimed.Claimed))) == c.nth
				}}
				fast, slow := sendertest.NewRoundTripper(), sendertest.NewRoundTripper(sendertest.Delay(9*time.Second, sendertest.Status(200)))
				b.Start(b.DispatcherOn(store, dispatch.Config{MaxIdle: c.idle, UnguardedTransport: bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host == "slow" {
						return slow.RoundTrip(r)
					}
					return fast.RoundTrip(r)
				})}))
				time.Sleep(time.Second)
				published := c.nth
				if c.busy {
					b.Publish("sub_slow")
					time.Sleep(200 * time.Millisecond)
					published--
				}
				for range published {
					b.Publish("sub_a")
					time.Sleep(200 * time.Millisecond)
				}
				time.Sleep(3 * time.Second)
				list, _, err := b.Store.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusDelivered})
				require.NoError(t, err)
				require.Len(t, list, int(published))
				for _, d := range list {
					d, err := b.History.Delivery(t.Context(), d.ID)
					require.NoError(t, err)
					require.Len(t, d.Attempts, 1)
				}
				require.EqualValues(t, c.nth+1, claims.Load())
			})
		})
	}
}

// slowEndStore takes a second for the last figures of a run, and shows leases only then.
type slowEndStore struct {
	dispatch.Store
	ending *atomic.Bool
}

func (s slowEndStore) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]dispatch.Release, error) {
	if !s.ending.Load() {
		return nil, nil
	}
	return s.Store.LeasedUnder(ctx, tokens, limit)
}

func (s slowEndStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if p.Limit == 0 {
		s.ending.Store(true)
		time.Sleep(time.Second)
	}
	return s.Store.Sweep(ctx, p)
}

// Leases of such a claim that are found while the run ends are given back all the same.
func TestClaimWhoseAnswerWasLostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		store := &lostAnswerStore{slowEndStore{b.Store, new(atomic.Bool)}, func(claimed dispatch.Claims) bool { return len(claimed.Claimed) > 0 }}
		stop := b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		time.Sleep(10 * time.Millisecond)
		require.True(t, b.Delivery().InFlight)
		require.NoError(t, stop())
		require.False(t, b.Delivery().InFlight)
	})
}
