package scenario_test

import (
	"bytes"
	"context"
	"database/sql"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// A receiver answers a sender's challenge by itself if, and only if, it has the
// subscriber's secret.
func TestChallenge(t *testing.T) {
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	network := sender.Network{AllowPrivateNetworks: true}
	challenger, err := challenge.New(&challenge.Config{Network: network})
	require.NoError(t, err)
	registry, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network, Challenger: challenger})
	require.NoError(t, err)

	db, err := sql.Open("sqlite", crashDSN(filepath.Join(t.TempDir(), "receiver.db")))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, dedup.Migrate(t.Context(), db))
	_, secret, err := registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keyring, nil)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), "default", nil)
	require.NoError(t, err)
	endpoint := httptest.NewServer(rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error {
		t.Error("a challenge is no event for the application")
		return nil
	})))
	defer endpoint.Close()

	s, err := registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: endpoint.URL})
	require.NoError(t, err)
	require.Equal(t, sender.SubscriptionActive, s.Status)

	_, _, err = registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_b"})
	require.NoError(t, err)
	_, err = registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_b", URL: endpoint.URL})
	require.ErrorIs(t, err, sender.ErrChallenge, "nobody can have events sent to an endpoint of somebody else")
	var failed *challenge.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 401, failed.StatusCode)
}
