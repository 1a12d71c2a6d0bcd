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
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// frozenStore is the store of a process that stands still from the time when frozen is set
// until thaw is closed.
type frozenStore struct {
	dispatch.Store
	frozen chan struct{}
	thaw   chan struct{}
}

func (s *frozenStore) wait() {
	select {
	case <-s.frozen:
		<-s.thaw
	default:
	}
}

func (s *frozenStore) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	s.wait()
	return s.Store.Beat(ctx, p)
}

func (s *frozenStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	s.wait()
	return s.Store.Step(ctx, p, b)
}

// Another process attempts the deliveries of a process that stands still again within ten
// seconds. Nothing changes when that process comes back.
func TestWhatIsHeldIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &frozenStore{Store: b.Store, frozen: make(chan struct{}), thaw: make(chan struct{})}
		slow := sendertest.NewRoundTripper(sendertest.Delay(9*time.Second, sendertest.Status(500)))
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: slow}))
		b.Publish("sub_a")
		time.Sleep(2 * time.Second)
		require.True(t, b.Delivery().InFlight)
		close(store.frozen)
		var taken atomic.Int64
		b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(),
			Hooks:              dispatch.Hooks{TakenOver: func(_ context.Context, leases int) { taken.Add(int64(leases)) }},
		}))
		time.Sleep(10 * time.Second)
		require.Equal(t, int64(1), taken.Load())
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 2)
		require.Equal(t, sender.ClassInterrupted, d.Attempts[0].Class)

		close(store.thaw)
		time.Sleep(time.Minute)
		require.Equal(t, d, b.Delivery(), "what it brings comes too late")
		require.Len(t, slow.Requests(), 1)
	})
}
