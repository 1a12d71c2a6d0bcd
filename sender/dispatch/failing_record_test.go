package dispatch_test

import (
	"context"
	"fmt"
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

// failingStore fails the next few times when it must record results, without having changed
// anything.
type failingStore struct {
	dispatch.Store
	failures atomic.Int64 // how many more times it fails
	failed   atomic.Int64
}

func (s *failingStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if len(b.Results) > 0 && s.failures.Add(-1) >= 0 {
		s.failed.Add(1)
		return dispatch.Expanded{}, dispatch.Claims{}, errAway
	}
	return s.Store.Step(ctx, p, b)
}

// A result that could not be recorded is kept, and recorded once the database is back.
// Nothing is posted a second time, as it would be if the lease ended. This holds for one
// failure and for an outage, while the dispatcher runs and while it stops.
func TestResultsOutlastFailuresOfTheDatabase(t *testing.T) {
	for _, failures := range []int64{1, 6} {
		for _, stopping := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, stopping %t", failures, stopping), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := bedtest.New(t)
					endpoint := sendertest.NewRoundTripper()
					b.Subscribe("sub_a", "http://endpoint/")
					store := &failingStore{Store: b.Store}
					store.failures.Store(failures)
					var recorded atomic.Int64
					cfg := dispatch.Config{
						UnguardedTransport: endpoint,
						Hooks:              dispatch.Hooks{Recorded: func(context.Context, *dispatch.Recorded) { recorded.Add(1) }},
					}
					stop := b.Start(b.DispatcherOn(store, cfg))
					const events = 5
					for range events {
						b.Publish("sub_a")
					}
					if stopping {
						for store.failed.Load() == 0 {
							time.Sleep(time.Millisecond)
						}
						require.NoError(t, stop())
						require.EqualValues(t, len(endpoint.Requests()), recorded.Load(), "what was posted was recorded before the end")
						b.Start(b.DispatcherOn(store, cfg))
					}
					time.Sleep(10 * time.Minute)                                           // leases have ended
					require.Equal(t, events, len(endpoint.Requests()), "posted once each") //nolint:testifylint // Len would print them all
					require.EqualValues(t, failures, store.failed.Load())
					require.EqualValues(t, events, recorded.Load(), "told once each")
					list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{})
					require.NoError(t, err)
					require.Len(t, list, events)
					for _, d := range list {
						require.Equal(t, sender.StatusDelivered, d.Status)
						whole, err := b.History.Delivery(t.Context(), d.ID)
						require.NoError(t, err)
						require.Len(t, whole.Attempts, 1, "none was interrupted")
					}
				})
			})
		}
	}
}
