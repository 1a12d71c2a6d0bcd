package sender_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// many registers subscribers, some of which are in the middle of a rotation, and
// returns how many secrets they have.
func many(b *bedtest.Bed, n int) (secrets int) {
	b.T.Helper()
	for i := range n {
		id := fmt.Sprintf("sub_%03d", i)
		_, _, err := b.Registry.CreateSubscriber(b.T.Context(), sender.NewSubscriber{ID: id})
		require.NoError(b.T, err)
		secrets++
		if i%5 == 0 {
			_, _, err := b.Registry.RotateSecret(b.T.Context(), id, nil)
			require.NoError(b.T, err)
			secrets++
		}
	}
	return secrets
}

// opens ends the test unless keys open all secrets, and these are unchanged.
func opens(b *bedtest.Bed, keys *sender.Keys, n int, versions map[string]int64) {
	b.T.Helper()
	reg, err := sender.NewRegistry(b.Store, keys, nil)
	require.NoError(b.T, err)
	for i := range n {
		id := fmt.Sprintf("sub_%03d", i)
		_, err := reg.Keyring(b.T.Context(), id)
		require.NoError(b.T, err)
		require.Equal(b.T, versions[id], sealed(b, id).Version, "nothing has to be loaded again")
	}
}

func versions(b *bedtest.Bed, n int) map[string]int64 {
	b.T.Helper()
	versions := map[string]int64{}
	for i := range n {
		id := fmt.Sprintf("sub_%03d", i)
		versions[id] = sealed(b, id).Version
	}
	return versions
}

func sealingKeys(b *bedtest.Bed) []string {
	b.T.Helper()
	ids, err := b.Store.SealingKeys(b.T.Context())
	require.NoError(b.T, err)
	return ids
}

func TestRewrap(t *testing.T) {
	b := bedtest.New(t)
	const n = 120
	secrets := many(b, n)
	versions := versions(b, n)
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), nil)
	require.NoError(t, err)
	rewrapped, err := reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, secrets, rewrapped)
	require.Equal(t, []string{"2|aba5aa70"}, sealingKeys(b))
	opens(b, bedtest.NewKeys(t, "2"), n, versions)
	rewrapped, err = reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Zero(t, rewrapped)
}

var errAway = errors.New("the database is away")

// interruptedStore fails at the nth secret that is sealed anew.
type interruptedStore struct {
	sender.Store[*memory.Tx]
	left int
}

func (s *interruptedStore) RewrapTx(ctx context.Context, tx *memory.Tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	if s.left--; s.left < 0 {
		return false, errAway
	}
	return s.Store.RewrapTx(ctx, tx, subscriber, old, sealed)
}

// At whatever secret Rewrap stops, its work so far stays, all secrets can be opened, and
// the next call does the rest.
func TestRewrapInterrupted(t *testing.T) {
	const n = 110
	for _, at := range []int{0, 1, 59, 60, 61, 119, 120, 121, 131} {
		b := bedtest.New(t)
		secrets := many(b, n)
		versions := versions(b, n)
		store := &interruptedStore{Store: b.Store, left: at}
		reg, err := sender.NewRegistry(store, bedtest.NewKeys(t, "2", "1"), nil)
		require.NoError(t, err)
		done, err := reg.Rewrap(t.Context())
		require.ErrorIs(t, err, errAway)
		require.LessOrEqual(t, done, at)
		require.Greater(t, done, at-100, "it works in small transactions")
		opens(b, bedtest.NewKeys(t, "2", "1"), n, versions)
		store.left = secrets
		rest, err := reg.Rewrap(t.Context())
		require.NoError(t, err)
		require.Equal(t, secrets, done+rest)
		opens(b, bedtest.NewKeys(t, "2"), n, versions)
	}
}

// A secret that cannot be opened does not keep Rewrap from the other secrets, and Rewrap
// does not look for it forever.
func TestRewrapOfWhatCannotBeOpened(t *testing.T) {
	b := bedtest.New(t)
	const n = 60
	secrets := many(b, n)
	sealedBy := func(id string, key sender.SealingKey) {
		keys, err := sender.NewKeys(key)
		require.NoError(t, err)
		reg, err := sender.NewRegistry(b.Store, keys, nil)
		require.NoError(t, err)
		_, err = reg.RevokeSecret(t.Context(), id, signing.Secret{})
		require.NoError(t, err)
	}
	sealedBy("sub_001", sender.SealingKey{ID: "9", Key: bytes.Repeat([]byte("9"), 32)})
	sealedBy("sub_002", sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("another"), 5)[:32]})
	for i := 11; i < 31; i++ {
		if i%5 != 0 {
			k := sealed(b, fmt.Sprintf("sub_%03d", i))
			for _, s := range k.Secrets {
				s.Sealed[len(s.Sealed)-1] ^= 1
			}
			require.NoError(t, b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
				return b.Store.SetSecretsTx(t.Context(), tx, k.Subscriber, k.Version, k.Secrets)
			}))
		}
	}
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), nil)
	require.NoError(t, err)
	for _, left := range []int{secrets - 18, 0} {
		done, err := reg.Rewrap(t.Context())
		require.ErrorIs(t, err, sender.ErrSealed)
		require.ErrorContains(t, err, `not among those given: "1" (fingerprint 42f61454), for which other bytes were given (fingerprint 6819fe1d), "9" (fingerprint 607751bd)`)
		require.ErrorContains(t, err, `sub_011`)
		require.ErrorContains(t, err, "\nand 6 more")
		require.Equal(t, 10, strings.Count(err.Error(), "was changed, or moved"))
		require.Equal(t, left, done)
		require.Equal(t, []string{"1|42f61454", "1|6819fe1d", "2|aba5aa70", "9|607751bd"}, sealingKeys(b))
	}
}

// racing rotates a secret between the read of keyrings and their sealing, as can happen
// where several transactions write at a time.
type racing struct {
	sender.Store[*memory.Tx]
	rotate func(tx *memory.Tx, subscriber string) error
}

func (s *racing) KeyringsTx(ctx context.Context, tx *memory.Tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
	list, err := s.Store.KeyringsTx(ctx, tx, key, after, limit)
	if len(list) > 0 {
		err = errors.Join(err, s.rotate(tx, list[0].Subscriber))
	}
	return list, err
}

func TestRewrapWhileOthersRotate(t *testing.T) {
	b := bedtest.New(t)
	const n = 4
	many(b, n)
	var fresh signing.Secret
	store := &racing{Store: b.Store, rotate: func(tx *memory.Tx, subscriber string) (err error) {
		fresh, err = b.Registry.RevokeSecretTx(t.Context(), tx, subscriber, signing.Secret{})
		return err
	}}
	reg, err := sender.NewRegistry(store, bedtest.NewKeys(t, "2", "1"), nil)
	require.NoError(t, err)
	done, err := reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, n-1, done)
	keyring, err := reg.Keyring(t.Context(), "sub_000")
	require.NoError(t, err)
	require.Equal(t, "1|6819fe1d", sealed(b, "sub_000").Secrets[0].Key, "it is left to the next call")
	verifies(t, keyring, fresh)
	store.rotate = func(*memory.Tx, string) error { return nil }
	done, err = reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, done)
	keyring, err = reg.Keyring(t.Context(), "sub_000")
	require.NoError(t, err)
	verifies(t, keyring, fresh)
}

// A change of secrets that were read before they were sealed anew does not bring back the older
// key.
func TestChangesSealAnew(t *testing.T) {
	for name, change := range map[string]func(r *sender.Registry[*memory.Tx]) error{
		"RotateSecret": func(r *sender.Registry[*memory.Tx]) error {
			_, _, err := r.RotateSecret(t.Context(), "sub_a", nil)
			return err
		},
		"ExtendSecret": func(r *sender.Registry[*memory.Tx]) error {
			_, err := r.ExtendSecret(t.Context(), "sub_a", time.Now().Add(25*time.Hour))
			return err
		},
		"ActivateSecret": func(r *sender.Registry[*memory.Tx]) error { return r.ActivateSecret(t.Context(), "sub_a") },
		"RetireSecret":   func(r *sender.Registry[*memory.Tx]) error { return r.RetireSecret(t.Context(), "sub_a") },
	} {
		b := bedtest.New(t)
		_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
		require.NoError(t, err)
		fresh, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), nil)
		require.NoError(t, err)
		require.NoError(t, change(reg), name)
		require.Equal(t, []string{"2|aba5aa70"}, sealingKeys(b), name)
		after, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), nil)
		require.NoError(t, err)
		keyring, err := after.Keyring(t.Context(), "sub_a")
		require.NoError(t, err, name)
		verifies(t, keyring, fresh)
	}
}

// A deleted subscriber's secrets still sign what was published before. So they are sealed anew,
// too, and Rewrap does not end at them.
func TestRewrapOfDeletedSubscribers(t *testing.T) {
	b := bedtest.New(t)
	_, secret := b.Subscribe("sub_a", "http://endpoint/")
	b.Publish("sub_a")
	require.NoError(t, b.Registry.DeleteSubscriber(t.Context(), "sub_a"))
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), nil)
	require.NoError(t, err)
	for _, left := range []int{1, 0} {
		done, err := reg.Rewrap(t.Context())
		require.NoError(t, err)
		require.Equal(t, left, done)
	}
	require.Equal(t, []string{"2|aba5aa70"}, sealingKeys(b))

	endpoint := sendertest.NewRoundTripper()
	d, err := dispatch.New(b.Store, bedtest.NewKeys(t, "2"), &dispatch.Config{Network: bedtest.Private, UnguardedTransport: endpoint})
	require.NoError(t, err)
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Len(t, endpoint.Requests(), 1)
	require.NoError(t, endpoint.Requests()[0].Verify(secret))
}

// changing changes subscriptions after they were listed, as can happen where several
// transactions write at a time.
type changing struct {
	sender.Store[*memory.Tx]
	change func(tx *memory.Tx) error
}

func (s *changing) SubscriptionsTx(ctx context.Context, tx *memory.Tx, subscriber, after string, limit int) ([]sender.Subscription, error) {
	list, err := s.Store.SubscriptionsTx(ctx, tx, subscriber, after, limit)
	if len(list) > 0 {
		err = errors.Join(err, s.change(tx))
	}
	return list, err
}

func TestRewrapWhileOthersChangeSubscriptions(t *testing.T) {
	b := bedtest.New(t)
	var ids []string
	for range 3 {
		s, _ := b.Subscribe("sub_a", "http://old/")
		_, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"X-Token": "old"}}})
		require.NoError(t, err)
		ids = append(ids, s.ID)
	}
	url := "http://new/"
	reg, err := sender.NewRegistry(&changing{b.Store, func(tx *memory.Tx) error {
		_, err := b.Registry.UpdateTx(t.Context(), tx, ids[0], sender.SubscriptionChange{URL: &url, Settings: &sender.Settings{MaxInFlight: 1}})
		return errors.Join(err, b.Registry.UnsubscribeTx(t.Context(), tx, ids[1]))
	}}, bedtest.NewKeys(t, "2", "1"), &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	done, err := reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, done, "the secret, and the header that is left")
	got, err := reg.Subscription(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, []any{url, 1, 0}, []any{got.URL, got.Settings.MaxInFlight, len(got.Settings.Headers)})
}

// Rewrap leaves settings that this release cannot read as they are sealed. It says so, since
// the older key must not be taken away yet, and does the rest.
func TestRewrapOfUnreadableSettings(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	headers := map[string]string{"X-Token": "token"}
	sub, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: headers}})
	require.NoError(t, err)
	other, _ := b.Subscribe("sub_b", "http://endpoint/")
	_, err = b.Registry.Update(t.Context(), other.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: headers}})
	require.NoError(t, err)
	readable, err := json.Marshal(sub.Settings)
	require.NoError(t, err)
	stored := func(text []byte) {
		sub.Settings = sender.ReadSettings(text)
		require.NoError(t, b.Store.InTx(t.Context(), func(tx *memory.Tx) error { return b.Store.UpdateSubscriptionTx(t.Context(), tx, sub) }))
	}
	stored(bytes.Replace(readable, []byte(`"Timeout":0`), []byte(`"Timeout":"of a later release"`), 1))
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), nil)
	require.NoError(t, err)
	for _, left := range []int{3, 0} {
		done, err := reg.Rewrap(t.Context())
		require.ErrorContains(t, err, "the stored settings cannot be read by this release")
		require.ErrorContains(t, err, s.ID)
		require.Equal(t, left, done)
	}
	stored(readable)
	done, err := reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, done)
}

// verifies ends the test unless a keyring verifies signatures with a secret.
func verifies(t *testing.T, k *signing.Keyring, secret signing.Secret) {
	t.Helper()
	one, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	header := map[string][]string{}
	now := time.Now()
	require.NoError(t, signing.Sign(header, signing.DefaultSchemes(), "evt_1", now, nil, one))
	_, err = signing.StandardWebhooks{}.Verify(signing.Message{Header: header}, k, now, time.Minute)
	require.NoError(t, err)
}
