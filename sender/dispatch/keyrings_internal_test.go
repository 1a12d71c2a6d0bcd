package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// sealing is the part of a store that a Registry seals secrets into.
type sealing struct {
	sender.Store[struct{}]
	got []sender.SealedSecret
}

func (s *sealing) InTx(_ context.Context, fn func(struct{}) error) error { return fn(struct{}{}) }

func (s *sealing) CreateSubscriberTx(_ context.Context, _ struct{}, _ sender.Subscriber, secrets []sender.SealedSecret) error {
	s.got = secrets
	return nil
}

// sealSecret returns a subscriber's secret, as a store keeps it.
func sealSecret(t *testing.T, keys *sender.Keys, subscriber string, secret signing.Secret) sender.SealedSecret {
	t.Helper()
	var store sealing
	reg, err := sender.NewRegistry(&store, keys, nil)
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: subscriber, Secret: secret})
	require.NoError(t, err)
	return store.got[0]
}

// keyringStore answers each load of a keyring when the test sends the answer.
type keyringStore struct {
	Store
	loads   atomic.Int64
	answers []chan sender.SealedKeyring
}

func (s *keyringStore) Keyrings(context.Context, []int64) (map[int64]sender.SealedKeyring, error) {
	return map[int64]sender.SealedKeyring{5: <-s.answers[s.loads.Add(1)-1]}, nil
}

func newKeyringBed(t *testing.T, loads int) (*keyrings, *keyringStore, func(version int64, secret signing.Secret) sender.SealedKeyring) {
	t.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	store := &keyringStore{}
	for range loads {
		store.answers = append(store.answers, make(chan sender.SealedKeyring, 1))
	}
	return newKeyrings(store, keys, time.Now, time.Minute), store, func(version int64, secret signing.Secret) sender.SealedKeyring {
		return sender.SealedKeyring{Subscriber: "sub_a", Version: version, Secrets: []sender.SealedSecret{sealSecret(t, keys, "sub_a", secret)}}
	}
}

func claimAt(version int64) *Target { return &Target{SubscriberNumber: 5, KeyringVersion: version} }

// signs tells whether a keyring signs with a secret.
func signs(t *testing.T, k *signing.Keyring, secret signing.Secret) bool {
	t.Helper()
	want, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	sign := func(k *signing.Keyring) string {
		h := map[string][]string{}
		require.NoError(t, signing.Sign(h, signing.DefaultSchemes(), "evt_1", noon, nil, k))
		return h["Webhook-Signature"][0]
	}
	return sign(k) == sign(want)
}

// If a load began for a claim from before a rotation, and ends after a load that began
// later, its keyring is neither shared with later claims nor kept.
func TestLoadsOfKeyringsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, store, sealed := newKeyringBed(t, 3)
		old, fresh := signing.GenerateSecret(), signing.GenerateSecret()
		type loaded struct {
			keyring *signing.Keyring
			err     error
		}
		load := func(version int64) chan loaded {
			done := make(chan loaded, 1)
			go func() {
				keyring, err := k.of(t.Context(), claimAt(version))
				done <- loaded{keyring, err}
			}()
			synctest.Wait()
			return done
		}
		early := load(1)
		late, again := load(2), load(2)
		require.EqualValues(t, 2, store.loads.Load(), "claims of one version share a load, others do not")

		store.answers[1] <- sealed(2, fresh)
		for _, done := range []chan loaded{late, again} {
			got := <-done
			require.NoError(t, got.err)
			require.True(t, signs(t, got.keyring, fresh))
		}
		store.answers[0] <- sealed(1, old)
		got := <-early
		require.NoError(t, got.err)
		require.True(t, signs(t, got.keyring, old), "the claim was made before")

		for _, version := range []int64{2, 1} {
			keyring, err := k.of(t.Context(), claimAt(version))
			require.NoError(t, err)
			require.True(t, signs(t, keyring, fresh), "claim of version %d", version)
		}
		require.EqualValues(t, 2, store.loads.Load(), "what was loaded is kept")

		// The store reads from a replica that lags.
		store.answers[2] <- sealed(2, fresh)
		_, err := k.of(t.Context(), claimAt(3))
		require.ErrorContains(t, err, "older than the claim's")
	})
}

// A secret that cannot be opened is not read again for each delivery. It is looked at again
// after a while, or when it has changed.
func TestKeyringThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, store, sealed := newKeyringBed(t, 4)
		secret := signing.GenerateSecret()
		other, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{9}, 32)})
		require.NoError(t, err)
		locked := sender.SealedKeyring{Subscriber: "sub_a", Version: 1, Secrets: []sender.SealedSecret{sealSecret(t, other, "sub_a", secret)}}
		store.answers[0] <- locked
		for range 100 {
			_, err := k.of(t.Context(), claimAt(1))
			require.ErrorIs(t, err, sender.ErrSealed)
		}
		require.EqualValues(t, 1, store.loads.Load())

		time.Sleep(secretPause)
		store.answers[1] <- locked
		_, err = k.of(t.Context(), claimAt(1))
		require.ErrorIs(t, err, sender.ErrSealed)
		require.EqualValues(t, 2, store.loads.Load())

		store.answers[2] <- sealed(2, secret)
		_, err = k.of(t.Context(), claimAt(2))
		require.NoError(t, err, "it was revoked")

		// The keyring was evicted, and meanwhile sealed with a key that is not known here:
		// a load that fails does not replace an opened keyring.
		k.keep(5, openKeyring{version: 2, err: sender.ErrSealed, again: time.Now().Add(time.Hour)})
		_, err = k.of(t.Context(), claimAt(2))
		require.NoError(t, err)
	})
}

// If there are more subscribers than fit, the keyrings that were used last stay.
func TestKeyringsForgetTheOldest(t *testing.T) {
	k, store, sealed := newKeyringBed(t, 1)
	store.answers[0] <- sealed(1, signing.GenerateSecret())
	_, err := k.of(t.Context(), claimAt(1))
	require.NoError(t, err)
	for n := range int64(3 * maxKeyrings) {
		k.keep(100+n, openKeyring{version: 1, keyring: &signing.Keyring{}})
		if n%1000 == 0 { // otherwise the store would have to answer again
			_, err := k.of(t.Context(), claimAt(1))
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, 1, store.loads.Load())
	require.Equal(t, maxKeyrings, k.opened.Len())
}

func TestUnsent(t *testing.T) {
	u := unsentLog{logged: map[int64]time.Time{}}
	require.True(t, u.due(1, noon))
	require.False(t, u.due(1, noon.Add(secretPause-1)))
	require.True(t, u.due(2, noon.Add(time.Second)))
	require.True(t, u.due(1, noon.Add(secretPause)))
	for i := range int64(3 * maxUnsent) {
		u.due(i, noon.Add(time.Hour))
		require.LessOrEqual(t, len(u.logged), maxUnsent)
	}
}

// gatedStore holds loads up until it is told how many to let go.
type gatedStore struct {
	Store
	t       *testing.T
	keys    *sender.Keys
	asked   [][]int64
	running atomic.Int64
	most    int64
	gate    chan struct{}
}

func (s *gatedStore) Keyrings(_ context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	s.most = max(s.most, s.running.Add(1))
	defer s.running.Add(-1)
	s.asked = append(s.asked, numbers)
	<-s.gate
	found := map[int64]sender.SealedKeyring{}
	for _, no := range numbers {
		if no == 13 {
			panic("a bug of the store")
		}
		id := fmt.Sprint("sub_", no)
		if no != 7 {
			found[no] = sender.SealedKeyring{Subscriber: id, Version: no, Secrets: []sender.SealedSecret{sealSecret(s.t, s.keys, id, signing.GenerateSecret())}}
		}
	}
	return found, nil
}

// Many keyrings that are wanted at once take few loads of the database, and no more than
// two of its connections. Each attempt gets its own keyring, or the error for which there
// is none.
func TestKeyringsAreLoadedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
		require.NoError(t, err)
		store := &gatedStore{t: t, keys: keys, gate: make(chan struct{})}
		k := newKeyrings(store, keys, time.Now, time.Minute)
		type got struct {
			number  int64
			keyring *signing.Keyring
			err     error
		}
		all := make(chan got, 600)
		for number := range int64(300) {
			for range 2 {
				if number == 13 {
					continue
				}
				go func() {
					keyring, err := k.of(t.Context(), &Target{SubscriberNumber: number, KeyringVersion: number})
					all <- got{number, keyring, err}
				}()
			}
			if number < keyringLoads {
				synctest.Wait() // its load begins now
			}
		}
		synctest.Wait()
		require.Len(t, store.asked, keyringLoads)
		close(store.gate)
		for range cap(all) - 2 {
			g := <-all
			if g.number == 7 {
				require.ErrorIs(t, g.err, sender.ErrNotFound)
				continue
			}
			require.NoError(t, g.err, "subscriber %d", g.number)
			require.NotNil(t, g.keyring)
		}
		require.EqualValues(t, keyringLoads, store.most)
		require.LessOrEqual(t, len(store.asked), 2*keyringLoads)

		// An attempt does not wait for a load for ever.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range keyringLoads {
			k.loads <- struct{}{}
		}
		_, err = k.of(ctx, &Target{SubscriberNumber: 400})
		require.ErrorIs(t, err, errKeyringUnread)
		for range keyringLoads {
			<-k.loads
		}

		// It does not wait for a load that panicked either.
		ended := make(chan struct{})
		k.mu.Lock()
		w := &wantedKeyring{done: make(chan struct{})}
		k.wanted[13] = w
		k.mu.Unlock()
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_, _ = k.of(t.Context(), &Target{SubscriberNumber: 13})
		}()
		<-ended
		<-w.done
		require.ErrorIs(t, w.unread, errKeyringUnread)
		_, err = k.of(t.Context(), &Target{SubscriberNumber: 14, KeyringVersion: 1})
		require.NoError(t, err, "others go on")
	})
}

// silentStore does not answer the first loads: their connections hang.
type silentStore struct {
	gatedStore
	silent, ended atomic.Int64
}

func (s *silentStore) Keyrings(ctx context.Context, numbers []int64) (map[int64]sender.SealedKeyring, error) {
	if s.silent.Add(-1) < 0 {
		return s.gatedStore.Keyrings(ctx, numbers)
	}
	defer s.ended.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A database that does not answer costs an attempt no more than a load's timeout, however
// long the dispatcher runs. Then the next load goes to another connection.
func TestLoadOfKeyringsThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
		require.NoError(t, err)
		store := &silentStore{gatedStore: gatedStore{t: t, keys: keys, gate: make(chan struct{})}}
		store.silent.Store(keyringLoads)
		close(store.gate)
		d, err := newDispatcher(store, keys, &Config{Timeout: 7 * time.Second}, time.Now)
		require.NoError(t, err)
		k := d.secrets
		begun := time.Now()
		of := func(number int64) error {
			_, err := k.of(t.Context(), &Target{SubscriberNumber: number, KeyringVersion: number})
			return err
		}
		hung := make(chan error)
		for number := range int64(keyringLoads) {
			go func() { hung <- of(number) }()
			synctest.Wait() // each has a load of its own
		}
		joined := make(chan error)
		go func() { joined <- of(0) }()
		waits := make(chan error)
		go func() { waits <- of(20) }()
		for range keyringLoads {
			err := <-hung
			require.ErrorIs(t, err, errKeyringUnread)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.ErrorIs(t, <-joined, errKeyringUnread, "who waits for the same load")
		require.NoError(t, <-waits, "who waited for one to end")
		require.Equal(t, 7*time.Second, time.Since(begun))
		require.EqualValues(t, keyringLoads, store.ended.Load())
		require.NoError(t, of(0), "it is loaded anew")
	})
}

// A Loop's time comes from its driver: the Loop sets no timer, however long a load takes.
func TestALoopsLoadsHaveNoTimer(t *testing.T) {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	store := &deadlines{}
	l, err := NewLoop(store, keys, nil, time.Now)
	require.NoError(t, err)
	_, err = l.p.d.secrets.of(t.Context(), claimAt(1))
	require.ErrorIs(t, err, sender.ErrNotFound)
	require.Equal(t, []bool{false}, store.had)
}

// deadlines notes which loads have a deadline.
type deadlines struct {
	Store
	had []bool
}

func (s *deadlines) Keyrings(ctx context.Context, _ []int64) (map[int64]sender.SealedKeyring, error) {
	_, ok := ctx.Deadline()
	s.had = append(s.had, ok)
	return nil, nil
}
