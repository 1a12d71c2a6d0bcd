package dispatch_test

import (
	"context"
	"strconv"
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

// slowStore answers late.
type slowStore struct {
	dispatch.Store
	claim, keyring time.Duration // the next call takes this long
	released       atomic.Int64
}

func (s *slowStore) Release(ctx context.Context, rs []dispatch.Release) error {
	s.released.Add(int64(len(rs)))
	return s.Store.Release(ctx, rs)
}

func (s *slowStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := s.Store.Step(ctx, p, b)
	if len(c.Claimed) > 0 {
		time.Sleep(s.claim)
		s.claim = 0
	}
	return x, c, err
}

func (s *slowStore) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	time.Sleep(s.keyring)
	s.keyring = 0
	return s.Store.Keyrings(ctx, subscribers)
}

// A lease begins with the claim, however long the answer and the secret take to arrive.
// Nothing is posted under a lease that does not outlast the attempt.
func TestSlowDatabaseUsesUpTheLease(t *testing.T) {
	for name, store := range map[string]*slowStore{
		"claim":   {claim: 45 * time.Second},
		"keyring": {claim: 35 * time.Second, keyring: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper()
				_, secret := b.Subscribe("sub_a", "http://endpoint/")
				store.Store = b.Store
				began, slow := time.Now(), store.claim+store.keyring
				b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint}))
				b.Publish("sub_a")
				time.Sleep(slow - time.Second)
				require.Empty(t, endpoint.Requests())
				time.Sleep(2 * time.Second)
				posts := endpoint.Requests()
				require.Len(t, posts, 1)
				require.EqualValues(t, 1, store.released.Load())
				require.Len(t, b.Delivery().Attempts, 1, "it was given back, and claimed anew")
				require.WithinRange(t, b.Delivery().Attempts[0].StartedAt, began.Add(slow), began.Add(slow+time.Second))
				require.NoError(t, posts[0].Verify(secret))
			})
		})
	}
}

// The signed time is the time of the POST. It is neither the time of the claim nor the time
// before the secret was read.
func TestSlowKeyringDoesNotAgeTheSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		b.Start(b.DispatcherOn(&slowStore{Store: b.Store, keyring: 9 * time.Second}, dispatch.Config{UnguardedTransport: endpoint}))
		b.Publish("sub_a")
		time.Sleep(10 * time.Second)
		post := endpoint.Requests()[0]
		require.Equal(t, strconv.FormatInt(post.ReceivedAt.Unix(), 10), post.Header.Get("Webhook-Timestamp"))
		require.Equal(t, b.Delivery().Attempts[0].StartedAt.Unix(), post.ReceivedAt.Unix())
	})
}

// silentStore does not answer one call of a method: its connection hangs.
type silentStore struct {
	dispatch.Store
	method string
	silent int64 // the number of the call
	calls  atomic.Int64
}

func (s *silentStore) call(ctx context.Context, method string) error {
	if method != s.method || s.calls.Add(1) != s.silent {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *silentStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if err := s.call(ctx, "Step"); err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, err
	}
	return s.Store.Step(ctx, p, b)
}

func (s *silentStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if err := s.call(ctx, "Sweep"); err != nil {
		return dispatch.Swept{}, err
	}
	return s.Store.Sweep(ctx, p)
}

func (s *silentStore) StepReplays(ctx context.Context, limit int, announce func(sender.Notice) (sender.Draft, bool)) (dispatch.ReplayStep, error) {
	if err := s.call(ctx, "StepReplays"); err != nil {
		return dispatch.ReplayStep{}, err
	}
	return s.Store.StepReplays(ctx, limit, announce)
}

func (s *silentStore) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	if err := s.call(ctx, "Prune"); err != nil {
		return dispatch.Pruned{}, err
	}
	return s.Store.Prune(ctx, p)
}

func (s *silentStore) ClaimNotices(ctx context.Context, lease time.Duration, limit int) ([]dispatch.ClaimedNotice, error) {
	if err := s.call(ctx, "ClaimNotices"); err != nil {
		return nil, err
	}
	return s.Store.ClaimNotices(ctx, lease, limit)
}

func (s *silentStore) Check(ctx context.Context) error {
	if err := s.call(ctx, "Check"); err != nil {
		return err
	}
	return s.Store.Check(ctx)
}

// A connection on which nobody answers, because the database's machine or the network between
// is gone, stops a dispatcher for some minutes, and not for as long as the system keeps it.
func TestCallThatHangs(t *testing.T) {
	for method, silent := range map[string]int64{"Check": 1, "Step": 3, "Sweep": 3, "StepReplays": 3, "Prune": 1, "ClaimNotices": 3} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper()
				b.Subscribe("sub_a", "http://endpoint/")
				store := &silentStore{Store: b.Store, method: method, silent: silent}
				accept := func(context.Context, sender.Notice) error { return nil }
				b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Notifier: accept}))
				time.Sleep(15 * time.Second)
				require.Equal(t, silent, store.calls.Load(), "it hangs")
				b.Publish("sub_a")
				time.Sleep(3 * time.Minute)
				require.Greater(t, store.calls.Load(), silent)
				require.Len(t, endpoint.Requests(), 1)
			})
		})
	}
}

// Prune gives such a call up, too.
func TestPruneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		for _, method := range []string{"Check", "Step", "Prune"} {
			_, err := b.DispatcherOn(&silentStore{Store: b.Store, method: method, silent: 1}, dispatch.Config{}).Prune(t.Context())
			require.ErrorIs(t, err, context.DeadlineExceeded, method)
		}
	})
}
