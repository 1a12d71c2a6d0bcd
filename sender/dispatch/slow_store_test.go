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
