package dispatch_test

import (
	"context"
	"math"
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
			UnguardedTransport: sendertest.NewRoundTripper(), MaxIdle: time.Minute,
			Hooks: dispatch.Hooks{TakenOver: func(_ context.Context, leases int) { taken.Add(int64(leases)) }},
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

// heldUpStore cannot take over, because what it would lock is locked. It counts the beats.
type heldUpStore struct {
	dispatch.Store
	tries, beats atomic.Int64
}

func (s *heldUpStore) TakeOver(ctx context.Context, _ dispatch.Presence) (int, error) {
	s.tries.Add(1)
	<-ctx.Done()
	return 0, ctx.Err()
}

func (s *heldUpStore) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	s.beats.Add(1)
	return s.Store.Beat(ctx, p)
}

// A process goes on to say that it lives while it waits for what it would take over.
// Otherwise others would take over what it holds, and so on.
func TestTakingOverHoldsUpNoBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		_, err := b.Store.Beat(t.Context(), dispatch.Presence{Process: 1, Beat: 1}) // the only one
		require.NoError(t, err)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &heldUpStore{Store: b.Store}
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper(sendertest.Delay(20*time.Second, sendertest.Status(204))), Timeout: 30 * time.Second}))
		b.Publish("sub_a")
		time.Sleep(8 * time.Second)
		require.Equal(t, int64(1), store.tries.Load())
		before := store.beats.Load()
		time.Sleep(8 * time.Second)
		require.GreaterOrEqual(t, store.beats.Load()-before, int64(7))
	})
}

// readOnlyStore is a store in which nobody may write while it is locked, and everybody may
// read, as in SQLite. There a step that has nothing to do reads, too. Those who wait to say
// that they live are the last to notice that the lock is gone.
type readOnlyStore struct {
	dispatch.Store
	lock  chan struct{} // holds one, which is taken by whoever may write
	beats atomic.Int64
}

func (s *readOnlyStore) write() (done func()) {
	<-s.lock
	return func() { s.lock <- struct{}{} }
}

func (s *readOnlyStore) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	s.beats.Add(1)
	s.write()()
	time.Sleep(50 * time.Millisecond)
	return s.Store.Beat(ctx, p)
}

func (s *readOnlyStore) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	defer s.write()()
	return s.Store.TakeOver(ctx, p)
}

// takesNothingOver starts a process that must find no other one gone.
func takesNothingOver(b *bedtest.Bed, store dispatch.Store) {
	b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper(), Hooks: dispatch.Hooks{
		TakenOver: func(context.Context, int) { b.T.Error("a process that lives was taken over") },
	}}))
}

// A process that cannot say that it lives because nobody can write is not gone.
func TestNobodyIsGoneWhileNobodyCanWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &readOnlyStore{Store: b.Store, lock: make(chan struct{}, 1)}
		store.lock <- struct{}{}
		slow := sendertest.NewRoundTripper(sendertest.Delay(20*time.Second, sendertest.Status(204)))
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: slow, Timeout: 30 * time.Second, Lease: time.Hour}))
		b.Publish("sub_a")
		time.Sleep(2 * time.Second)
		require.True(t, b.Delivery().InFlight)
		takesNothingOver(b, store)
		for range 3 {
			time.Sleep(2 * time.Second)
			done := store.write()
			time.Sleep(7 * time.Second)
			done()
		}
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 1)
		time.Sleep(10 * time.Second)
		before := store.beats.Load()
		time.Sleep(time.Minute)
		require.Equal(t, before, store.beats.Load(), "who holds nothing, and doubts nobody, says nothing")
	})
}

// slowAnswerStore has the answer of the first step come late that claims something.
type slowAnswerStore struct {
	dispatch.Store
	claimed atomic.Bool
}

func (s *slowAnswerStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	if len(c.Claimed) > 0 && s.claimed.CompareAndSwap(false, true) {
		time.Sleep(10 * time.Second)
	}
	return x, c, err
}

// A process that waits for the answer of a claim says that it lives, though it holds nothing
// else: what it has claimed may be committed.
func TestWhoWaitsForAClaimIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &slowAnswerStore{Store: b.Store}
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		b.Publish("sub_a")
		time.Sleep(2 * time.Second)
		require.True(t, store.claimed.Load())
		takesNothingOver(b, b.Store)
		time.Sleep(20 * time.Second)
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 1)
	})
}

// A process says that it lives as long as an attempt takes, however rarely it looks for work.
func TestWhoAttemptsIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		slow := sendertest.NewRoundTripper(sendertest.Delay(20*time.Second, sendertest.Status(204)))
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: slow, Timeout: 30 * time.Second, MaxIdle: time.Hour}))
		b.Publish("sub_a")
		time.Sleep(time.Second)
		require.Len(t, slow.Requests(), 1)
		takesNothingOver(b, b.Store)
		time.Sleep(30 * time.Second)
		require.Len(t, b.Delivery().Attempts, 1)
	})
}

// A process says that it lives as long as it has a result that it could not record.
func TestWhoMustRecordIsNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &failingStore{Store: b.Store}
		store.failures.Store(math.MaxInt64)
		b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		b.Publish("sub_a")
		time.Sleep(time.Second)
		takesNothingOver(b, b.Store)
		time.Sleep(20 * time.Second)
		require.True(t, b.Delivery().InFlight)
		store.failures.Store(0)
		time.Sleep(10 * time.Second)
		d := b.Delivery()
		require.Equal(t, sender.StatusDelivered, d.Status)
		require.Len(t, d.Attempts, 1)
	})
}

// Another process takes over at once what a process could not record before its end.
func TestWhatTheEndHasLeftIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		store := &failingStore{Store: b.Store}
		store.failures.Store(math.MaxInt64)
		stop := b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		b.Publish("sub_a")
		time.Sleep(time.Second)
		require.NoError(t, stop())
		require.True(t, b.Delivery().InFlight)
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		time.Sleep(10 * time.Second)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
	})
}
