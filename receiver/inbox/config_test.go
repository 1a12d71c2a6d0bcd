package inbox_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/signing"
)

// The error lists all invalid settings at once, with a line for each, and nothing starts.
func TestNewReportsEverything(t *testing.T) {
	_, err := inbox.New(nil, nil, nil, receiver.Work[*sql.Tx]{}, &inbox.Config{
		Workers: -1, MaxAttempts: -2, Lease: -time.Second, Poll: -time.Minute, Policy: backoff.Policy{Horizon: -time.Hour},
	})
	require.Error(t, err)
	said := strings.Split(err.Error(), "\n")
	for _, want := range []string{"Workers is -1", "MaxAttempts is -2", "Lease is -1s", "Poll is -1m0s", "the horizon is -1h0m0s", "receiver is nil", "InTx is nil", "store is nil", "the Work has no function"} {
		require.Contains(t, err.Error(), want)
	}
	require.Len(t, said, 9)
}

// While the receiver may still be applying an event, no other process may get it.
func TestLeaseOutlastsTheTimeout(t *testing.T) {
	open := onSQLite(t)
	rcv := newReceiver(t, open, signing.GenerateSecret(), nil, receiver.Config{})
	require.Equal(t, 8*time.Second, rcv.Timeout())
	_, err := inbox.New(rcv, open.inTx, open.store, receiver.State(open.effect), &inbox.Config{Lease: rcv.Timeout(), Workers: -1})
	require.ErrorContains(t, err, "Lease is 8s and the receiver's Timeout 8s")
	require.ErrorContains(t, err, "Workers is -1")
	_, err = inbox.New(rcv, open.inTx, open.store, receiver.State(open.effect), &inbox.Config{Lease: rcv.Timeout() + 1})
	require.NoError(t, err)
}
