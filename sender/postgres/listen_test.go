package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
)

// awaitWoken ends the test unless the store's dispatchers are woken.
func awaitWoken(t *testing.T, s *pgxStore, why string) {
	t.Helper()
	select {
	case <-s.Woken():
	case <-time.After(30 * time.Second):
		t.Fatal("nobody woke the dispatcher: " + why)
	}
}

// A hint of another process wakes the dispatchers of this one; also after the server
// has ended the session in which it listens.
func TestListenHearsOtherProcesses(t *testing.T) {
	p := newPlace(t)
	name := "listening " + p.schema
	here, there := p.store(t, "application_name", name), p.store(t)
	ctx, cancel := context.WithCancel(t.Context())
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		here.Listen(ctx)
	}()
	sessions := func() (n int) {
		return p.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'`, name)
	}

	awaitWoken(t, here, "it has begun to listen")
	there.Wake()
	awaitWoken(t, here, "another process has something")
	require.NoError(t, publishInTx(t.Context(), there, draft("")))
	awaitWoken(t, here, "another process has published")

	require.Equal(t, 1, sessions())
	p.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'`, name)
	awaitWoken(t, here, "it listens again")
	there.Wake()
	awaitWoken(t, here, "another process has something, after the session has ended")

	// A store does not hear hints for another schema: the next hint is its first.
	other, err := postgres.New(openPool(t), &postgres.Config{Schema: "elsewhere"})
	require.NoError(t, err)
	other.Wake()
	awaitWoken(t, other, "it is its own process")
	require.Eventually(t, func() bool { return !other.Hinting() }, 30*time.Second, time.Millisecond)
	require.Empty(t, here.Woken())

	cancel()
	<-listened
	require.Eventually(t, func() bool { return sessions() == 0 }, 30*time.Second, time.Millisecond, "its session ends with it")
}

// A process that dispatches need not tell the others.
func TestWakeIsNotSentByAProcessThatDispatches(t *testing.T) {
	p := newPlace(t)
	here, there := p.store(t), p.store(t)
	listening(t, here)
	listening(t, there)
	there.Wake()
	awaitWoken(t, there, "it is its own process")
	require.False(t, there.Hinting())
	require.Empty(t, here.Woken())
}

// listening makes a store listen until the test is over.
func listening(t *testing.T, s *pgxStore) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Listen(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	awaitWoken(t, s, "it has begun to listen")
}

// If a delivery becomes due and another process holds its subscription, that process
// gets a hint: from the process that expands, or that redelivers. No process hears its
// own hints.
func TestWhoHoldsASubscriptionIsTold(t *testing.T) {
	p := newPlace(t)
	holder, other := p.store(t), p.store(t)
	register(t, holder, 1, 1, sender.Settings{})
	publish(t, holder, 2, 1)
	expandAll(t, holder)
	by := func(process int64, claimed []dispatch.Claimed) dispatch.Batch {
		b := batchOf(claimed, 10)
		b.Claim.By = dispatch.Presence{Process: process, Beat: 1}
		return b
	}
	held := exchange(t, holder, by(7, nil)).Claimed
	require.Len(t, held, 2)
	listening(t, holder)
	listening(t, other)
	hears, err := pgx.Connect(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	defer func() { _ = hears.Close(context.Background()) }()
	_, err = hears.Exec(t.Context(), "LISTEN surehook")
	require.NoError(t, err)
	hint := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for {
			n, err := hears.WaitForNotification(ctx)
			require.NoError(t, err, "nobody has sent a hint")
			if strings.HasPrefix(n.Payload, p.schema+"/") {
				return n.Payload
			}
		}
	}

	require.NoError(t, publishInTx(t.Context(), other, draft(subscriberID(0))))
	_, claims, err := other.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, by(8, nil))
	require.NoError(t, err)
	require.Empty(t, claims.Claimed)
	awaitWoken(t, holder, "what it holds has got something")
	own := hint()
	more := exchange(t, holder, by(7, nil)).Claimed
	require.Len(t, more, 1)

	b := by(7, nil)
	b.Results = []dispatch.Result{{Key: held[0].Key, Token: held[0].Token, Number: 1, StartedAt: held[0].At, Class: sender.ClassTimeout}}
	exchange(t, holder, b)
	list, _, err := other.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusAwaitingRetry})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, other.Redeliver(t.Context(), list[0].ID, time.Time{}))
	awaitWoken(t, holder, "what it holds is redelivered")
	require.Equal(t, own, hint())

	for len(other.Woken()) > 0 { // of what it has done itself
		<-other.Woken()
	}
	for range 20 {
		p.exec(t, `SELECT pg_notify('surehook', $1)`, own)
		require.Equal(t, own, hint())
	}
	require.Empty(t, other.Woken(), "of hints of its own")
	p.exec(t, `SELECT pg_notify('surehook', $1)`, p.schema+"/another")
	awaitWoken(t, other, "of another's hint")
}

// The application's hook before a connection also runs for LISTEN: a password that
// changes would be outdated otherwise. The reason of a failure is logged once.
func TestListenConnectsAsThePoolDoes(t *testing.T) {
	p := newPlace(t)
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	cfg.ConnConfig.Database = "of_yesterday"
	var refusals atomic.Int64
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if refusals.Add(1) <= 2 {
			return errors.New("no password for now")
		}
		c.Database = p.pool.Config().ConnConfig.Database
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var said bytes.Buffer
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Listen(ctx)
	}()
	awaitWoken(t, s, "it has begun to listen")
	cancel()
	<-done
	require.Equal(t, 1, strings.Count(said.String(), "hints of other processes are not heard"), said.String())
	require.Contains(t, said.String(), "no password for now")
}

var _ dispatch.Listener = (*pgxStore)(nil)
