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
	"github.com/surehook/surehook/sender/postgres"
)

// awaitWoken ends the test if nobody wakes the store's dispatchers.
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

	// What is for another schema is not heard: the next hint is the first.
	other, err := postgres.New(openPool(t), &postgres.Config{Schema: "elsewhere"})
	require.NoError(t, err)
	other.Wake()
	awaitWoken(t, other, "it is its own process")
	require.Eventually(t, func() bool { return !other.Hinting() }, 10*time.Second, time.Millisecond)
	require.Empty(t, here.Woken())

	cancel()
	<-listened
	require.Eventually(t, func() bool { return sessions() == 0 }, 30*time.Second, time.Millisecond, "its session ends with it")
}

// A process that dispatches need not tell the others.
func TestWakeIsNotSentByAProcessThatDispatches(t *testing.T) {
	p := newPlace(t)
	here, there := p.store(t), p.store(t)
	for _, s := range []*pgxStore{here, there} {
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
	there.Wake()
	awaitWoken(t, there, "it is its own process")
	require.False(t, there.Hinting())
	require.Empty(t, here.Woken())
}

// What the application does before it connects is done for LISTEN, too: without, a
// password that changes would be an old one. Why it fails is said once.
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

var _ sender.Listener = (*pgxStore)(nil)
