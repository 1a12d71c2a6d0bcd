package dispatch_test

import (
	"context"
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

// failingRelease fails at the first call that gives claims back, either before it has given
// them back or after.
type failingRelease struct {
	dispatch.Store
	after bool
	calls atomic.Int64
}

func (s *failingRelease) Release(ctx context.Context, rs []dispatch.Release) error {
	if s.calls.Add(1) > 1 {
		return s.Store.Release(ctx, rs)
	}
	if s.after {
		if err := s.Store.Release(ctx, rs); err != nil {
			return err
		}
	}
	return errAway
}

// A dispatcher that stops gives back the deliveries that it has not begun, although the
// database failed at first, and whether the failed call had taken effect or not.
func TestWhatIsGivenBackOutlastsFailuresOfTheDatabase(t *testing.T) {
	for name, after := range map[string]bool{"before its effect": false, "after its effect": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper(sendertest.Status(204), sendertest.Delay(3*time.Second, sendertest.Status(204)))
				b.Subscribe("sub_a", "http://endpoint/")
				store := &failingRelease{Store: b.Store, after: after}
				stop := b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Slots: 4}))
				b.Publish("sub_a") // then it is proven, and more deliveries are claimed than begun
				time.Sleep(time.Second)
				const events = 20
				for range events {
					b.Publish("sub_a")
				}
				time.Sleep(time.Second)
				require.NoError(t, stop())
				require.EqualValues(t, 2, store.calls.Load())
				list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
				require.NoError(t, err)
				require.NotEmpty(t, list)
				for _, d := range list {
					require.False(t, d.InFlight, "nothing is leased any more")
				}
			})
		})
	}
}
