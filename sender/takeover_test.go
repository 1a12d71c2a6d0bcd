package sender_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// frozenStore is that of a process that stands still, from when frozen is set until thaw
// is closed.
type frozenStore struct {
	sender.DispatchStore
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

func (s *frozenStore) Beat(ctx context.Context, p sender.Presence) ([]sender.Presence, error) {
	s.wait()
	return s.DispatchStore.Beat(ctx, p)
}

func (s *frozenStore) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	s.wait()
	return s.DispatchStore.RecordAndClaim(ctx, b)
}

// What a process holds that stands still is attempted again by another one within ten
// seconds, and nothing changes when it comes back.
func TestWhatIsHeldIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.subscribe("sub_a", "http://endpoint/")
		store := &frozenStore{DispatchStore: b.store, frozen: make(chan struct{}), thaw: make(chan struct{})}
		slow := sendertest.NewRoundTripper(sendertest.Delay(9*time.Second, sendertest.Status(500)))
		b.start(b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: slow}))
		b.publish("sub_a")
		time.Sleep(2 * time.Second)
		require.True(t, b.delivery().InFlight)
		close(store.frozen)
		b.start(b.dispatcher(sender.DispatcherConfig{UnguardedTransport: sendertest.NewRoundTripper()}))
		time.Sleep(10 * time.Second)
		d := b.delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 2)
		require.Equal(t, sender.ClassInterrupted, d.Attempts[0].Class)

		close(store.thaw)
		time.Sleep(time.Minute)
		require.Equal(t, d, b.delivery(), "what it brings comes too late")
		require.Len(t, slow.Requests(), 1)
	})
}
