package sender_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// conflicting lets other writers be first, a number of times.
type conflicting struct {
	sender.Store[*memory.Tx]
	times int
}

func (s *conflicting) SetSecretsTx(ctx context.Context, tx *memory.Tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	if s.times--; s.times >= 0 {
		return sender.ErrConflict
	}
	return s.Store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
}

func TestSecretsChangedInBetween(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	store := &conflicting{Store: b.Store}
	reg, err := sender.NewRegistry(store, b.Keys, nil)
	require.NoError(t, err)
	for _, change := range []func() error{
		func() error {
			_, _, err := reg.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
			return err
		},
		func() error { return reg.ActivateSecret(t.Context(), "sub_a") },
		func() error { return reg.RetireSecret(t.Context(), "sub_a") },
		func() error { _, err := reg.RevokeSecret(t.Context(), "sub_a", signing.Secret{}); return err },
	} {
		before := sealed(b, "sub_a")
		store.times = 5
		require.ErrorIs(t, change(), sender.ErrConflict)
		require.Equal(t, before, sealed(b, "sub_a"))
		store.times = 4
		require.NoError(t, change())
		require.Equal(t, before.Version+1, sealed(b, "sub_a").Version)
	}
	store.times = 1
	require.ErrorIs(t, b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := reg.RevokeSecretTx(t.Context(), tx, "sub_a", signing.Secret{})
		return err
	}), sender.ErrConflict, "the caller's transaction is the caller's to run again")
}

// generations knows for each event how many secrets had been revoked before the event was
// claimed. Its loads of keyrings take so long that they overlap.
type generations struct {
	dispatch.Store
	revoked atomic.Int64
	mu      sync.Mutex
	of      map[string]int64
}

func (s *generations) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	revoked := s.revoked.Load()
	x, c, err := s.Store.Step(ctx, p, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range c.Claimed {
		s.of[d.Event.ID] = revoked
	}
	return x, c, err
}

func (s *generations) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	k, err := s.Store.Keyrings(ctx, subscribers)
	time.Sleep(7 * time.Millisecond)
	return k, err
}

// Once a secret is revoked, no delivery that is claimed afterwards is signed with it.
func TestRevokeUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		_, secret := b.Subscribe("sub_a", "http://endpoint/")
		secrets := []signing.Secret{secret}
		store := &generations{Store: b.Store, of: map[string]int64{}}
		stop := b.Start(b.DispatcherOn(store, dispatch.Config{MaxDelay: time.Millisecond, UnguardedTransport: bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
			time.Sleep(3 * time.Millisecond)
			return endpoint.RoundTrip(r)
		})}))
		const events = 600
		for i := range events {
			b.Publish("sub_a")
			time.Sleep(time.Millisecond)
			if i%20 == 10 || i%20 == 13 || i%20 == 17 { // some while a keyring is being loaded
				secret, err := b.Registry.RevokeSecret(t.Context(), "sub_a", signing.Secret{})
				require.NoError(t, err)
				secrets = append(secrets, secret)
				store.revoked.Add(1)
			}
		}
		time.Sleep(time.Minute)
		require.NoError(t, stop())
		posts := endpoint.Requests()
		require.Len(t, posts, events)
		met := map[int64]bool{}
		for _, p := range posts {
			claimed := store.of[p.Header.Get("Webhook-Id")]
			met[claimed] = true
			by := len(secrets) - 1
			for by >= 0 && p.Verify(secrets[by]) != nil {
				by--
			}
			require.GreaterOrEqual(t, int64(by), claimed, "claimed after the revocation of %d secrets, and signed with the one of number %d", claimed, by)
		}
		require.Greater(t, len(met), 60, "it was claimed all along")
	})
}
