package postgres_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A dispatcher that has ended leaves no goroutine, no session and no transaction.
func TestRunLeavesNothingBehind(t *testing.T) {
	const events = 40
	p := newPlace(t)
	name := "leaving " + p.schema
	before := runtime.NumGoroutine()
	pool, err := pgxpool.New(t.Context(), pgtest.With(pgtest.DSN(t), "application_name", name))
	require.NoError(t, err)
	defer pool.Close()
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	registry, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	_, _, err = registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	_, err = registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://127.0.0.1/"})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var recorded atomic.Int64
	done := make(chan struct{}, events)
	d, err := dispatch.New(s, keys, &dispatch.Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		UnguardedTransport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		}),
		Hooks: dispatch.Hooks{Recorded: func(context.Context, *dispatch.Recorded) {
			if recorded.Add(1) == events {
				close(done)
			}
		}},
	})
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		drafts := make([]sender.Draft, events)
		for i := range drafts {
			drafts[i] = draft("")
		}
		_, err := s.PublishTx(t.Context(), tx, drafts)
		return err
	}))
	<-done
	cancel()
	require.NoError(t, <-ended)
	// A connection whose statement was broken off is closed in the background.
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 30*time.Second, time.Millisecond, "connections that were not given back")
	p.settled(t)
	const listening = `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND (query LIKE 'LISTEN%' OR state LIKE 'idle in%')`
	require.Eventually(t, func() bool { return p.count(t, listening, name) == 0 }, 30*time.Second, time.Millisecond, "sessions that go on")
	pool.Close()
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}
