package sender_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// slowStore answers late.
type slowStore struct {
	sender.DispatchStore
	claim, keyring time.Duration // the next one takes so long
	released       atomic.Int64
}

func (s *slowStore) Release(ctx context.Context, rs []sender.Release) error {
	s.released.Add(int64(len(rs)))
	return s.DispatchStore.Release(ctx, rs)
}

func (s *slowStore) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	c, err := s.DispatchStore.RecordAndClaim(ctx, b)
	if len(c.Claimed) > 0 {
		time.Sleep(s.claim)
		s.claim = 0
	}
	return c, err
}

func (s *slowStore) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	time.Sleep(s.keyring)
	s.keyring = 0
	return s.DispatchStore.Keyrings(ctx, subscribers)
}

// A lease begins with the claim, however long it takes until its answer is there, and
// until the secret is: nothing is posted under one that does not outlast the attempt.
func TestSlowDatabaseUsesUpTheLease(t *testing.T) {
	for name, store := range map[string]*slowStore{
		"claim":   {claim: 45 * time.Second},
		"keyring": {claim: 35 * time.Second, keyring: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				endpoint := sendertest.NewRoundTripper()
				_, secret := b.subscribe("sub_a", "http://endpoint/")
				store.DispatchStore = b.store
				began, slow := time.Now(), store.claim+store.keyring
				b.start(b.dispatcherOn(store, sender.DispatcherConfig{UnguardedTransport: endpoint}))
				b.publish("sub_a")
				time.Sleep(slow - time.Second)
				require.Empty(t, endpoint.Requests())
				time.Sleep(2 * time.Second)
				posts := endpoint.Requests()
				require.Len(t, posts, 1)
				require.EqualValues(t, 1, store.released.Load())
				require.Len(t, b.delivery().Attempts, 1, "it was given back, and claimed anew")
				require.WithinRange(t, b.delivery().Attempts[0].StartedAt, began.Add(slow), began.Add(slow+time.Second))
				require.NoError(t, posts[0].Verify(secret))
			})
		})
	}
}

// What is signed is the time of the POST, and not that of the claim, nor that before
// the secret was there.
func TestSlowKeyringDoesNotAgeTheSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		endpoint := sendertest.NewRoundTripper()
		b.subscribe("sub_a", "http://endpoint/")
		b.start(b.dispatcherOn(&slowStore{DispatchStore: b.store, keyring: 9 * time.Second}, sender.DispatcherConfig{UnguardedTransport: endpoint}))
		b.publish("sub_a")
		time.Sleep(10 * time.Second)
		post := endpoint.Requests()[0]
		require.Equal(t, strconv.FormatInt(post.ReceivedAt.Unix(), 10), post.Header.Get("Webhook-Timestamp"))
		require.Equal(t, b.delivery().Attempts[0].StartedAt.Unix(), post.ReceivedAt.Unix())
	})
}
