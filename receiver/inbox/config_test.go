package inbox_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// The error lists all invalid settings at once, with a line for each, and nothing starts.
func TestNewReportsEverything(t *testing.T) {
	_, err := inbox.New(nil, nil, nil, receiver.Work[*sql.Tx]{}, &inbox.Config{
		Workers: -1, MaxAttempts: -2, Timeout: -time.Hour, Lease: -time.Second, Poll: -time.Minute, Policy: backoff.Policy{Horizon: -time.Hour},
	})
	require.Error(t, err)
	said := strings.Split(err.Error(), "\n")
	for _, want := range []string{"Workers is -1", "MaxAttempts is -2", "Timeout is -1h0m0s", "Lease is -1s", "Poll is -1m0s", "the horizon is -1h0m0s", "receiver is nil", "InTx is nil", "store is nil", "the Work has no function"} {
		require.Contains(t, err.Error(), want)
	}
	require.Len(t, said, 10)
}

// While the receiver may still be applying an event, no other process may get it.
func TestLeaseOutlastsTheTimeout(t *testing.T) {
	open := onSQLite(t)
	for _, c := range []struct {
		request, attempt, lease time.Duration
		says                    string // "": it is all right
	}{
		{0, 0, 30 * time.Second, "Lease is 30s and Timeout 30s"},
		{0, 0, 30*time.Second + 1, ""},
		{0, 8 * time.Second, 8*time.Second + 1, ""},
		{0, time.Hour, 0, "Lease is 1m0s and Timeout 1h0m0s"},
		{time.Minute, 0, 0, "Lease is 1m0s and Timeout 1m0s"},
		{time.Minute, time.Second, 0, ""},
	} {
		rcv := newReceiver(t, open, signing.GenerateSecret(), nil, "default", receiver.Config{Timeout: c.request})
		_, err := inbox.New(rcv, open.inTx, open.store, receiver.State(open.effect), &inbox.Config{Timeout: c.attempt, Lease: c.lease})
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.says)
	}
}

// No sender waits for an attempt, so it has more time than a request.
func TestAttemptsHaveATimeOfTheirOwn(t *testing.T) {
	const request, attempt = time.Minute, time.Hour
	open := onSQLite(t)
	var left time.Duration
	b := newBedUnder(t, open, receiver.Config{Timeout: request}, func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		ends, _ := ctx.Deadline()
		left = time.Until(ends)
		return open.effect(ctx, tx, ev)
	}, inbox.Config{Timeout: attempt, Lease: attempt + 1})
	b.post(receivertest.NewEvent("thing", "a", 1))
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	require.Greater(t, left, request)
	require.LessOrEqual(t, left, attempt)
}
