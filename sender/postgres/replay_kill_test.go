package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/postgres"
)

const (
	replayingDSN    = "SUREHOOK_TEST_REPLAYING_DSN"
	replayingSchema = "SUREHOOK_TEST_REPLAYING_SCHEMA"
	replayKills     = 5
	replayLine      = 100 // deliveries recorded
)

// TestMain lets tests run this program as the processes that are killed, or stopped.
func TestMain(m *testing.M) {
	takeovertest.Child(openChild)
	if dsn := os.Getenv(suspendedDSN); dsn != "" {
		if err := dispatchUntilToldTo(dsn, os.Getenv(suspendedSchema)); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if dsn := os.Getenv(replayingDSN); dsn != "" {
		panic(dispatch(dsn, os.Getenv(replayingSchema)))
	}
	if err := pgtest.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "NO EXAMPLES on PostgreSQL:", err)
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// childPlace is where a process of the tests in package takeover works, as JSON.
type childPlace struct {
	DSN, Schema string
	Pooler      bool
}

func openChild(text string) (sender.DispatchStore, error) {
	var p childPlace
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(context.Background(), p.DSN)
	if err != nil {
		return nil, err
	}
	return postgres.New(pool, &postgres.Config{Schema: p.Schema, Pooler: p.Pooler})
}

// accepts answers every POST at once.
type accepts struct{}

func (accepts) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

func replayKeys() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
}

func replayDispatcher(s *postgres.Store[pgx.Tx], hooks sender.Hooks) (*sender.Dispatcher, error) {
	keys, err := replayKeys()
	if err != nil {
		return nil, err
	}
	return sender.NewDispatcher(s, keys, &sender.DispatcherConfig{
		UnguardedTransport: accepts{}, Timeout: 100 * time.Millisecond, Lease: 500 * time.Millisecond, Hooks: hooks,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// dispatch goes on until it is killed, and prints a line for each step that records.
func dispatch(dsn, schema string) error {
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		return err
	}
	s, err := postgres.New(pool, &postgres.Config{Schema: schema})
	if err != nil {
		return err
	}
	recorded := 0
	d, err := replayDispatcher(s, sender.Hooks{Recorded: func(context.Context, *sender.Recorded) {
		if recorded++; recorded%replayLine == 0 {
			_, _ = os.Stdout.WriteString("more\n")
		}
	}})
	if err != nil {
		return err
	}
	return d.Run(context.Background())
}

// durableDSN names a server whose commits are on the disk, as a dispatcher demands.
func durableDSN(t *testing.T) string {
	t.Helper()
	dsn := pgtest.DSN(t)
	if os.Getenv("SUREHOOK_TEST_POSTGRES") != "" {
		return dsn
	}
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server.DSN()
}

// Two processes step a replay by turns, and are killed at any moment. No member is left
// out, and none is sent twice except those that were in flight.
func TestReplayKilled(t *testing.T) {
	const members = 20_000
	dsn, schema := durableDSN(t), newid.New("test_", time.Now())
	pool, err := pgxpool.New(t.Context(), pgtest.With(dsn, "search_path", schema))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := newStore(t, pool, schema)
	require.NoError(t, s.Migrate(t.Context()))
	t.Cleanup(func() { dropSchema(t, pool, schema) })
	deadLetters(t, s, pool, members)
	replays, err := sender.NewReplays(s, nil)
	require.NoError(t, err)
	begun := time.Now()
	r, err := replays.Create(t.Context(), sender.NewReplay{})
	require.NoError(t, err)
	require.EqualValues(t, members, r.Matched)
	t.Logf("created in %s", time.Since(begun).Round(time.Millisecond))

	begun = time.Now()
	for range replayKills {
		killReplaying(t, dsn, schema, members)
	}
	r, err = replays.Get(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, sender.ReplayRunning, r.Status, "all kills came before its end")
	t.Logf("%d of them admitted when the last process was killed", r.Admitted)
	d, err := replayDispatcher(s, sender.Hooks{})
	require.NoError(t, err)
	const live = `SELECT (SELECT count(*) FROM surehook_pending) + (SELECT count(*) FROM surehook_leases) + (SELECT count(*) FROM surehook_waiting)`
	for r.Status == sender.ReplayRunning || count(t, pool, live) > 0 {
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		<-time.After(20 * time.Millisecond) // the leases of the killed end
	}
	interrupted := count(t, pool, `SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`)
	t.Logf("%d sent again in %s, %d attempts interrupted", members, time.Since(begun).Round(time.Millisecond), interrupted)

	require.Equal(t, sender.ReplayFinished, r.Status)
	require.EqualValues(t, members, r.Admitted)
	require.Zero(t, r.Skipped)
	require.NotZero(t, interrupted, "kills between a claim and its result")
	require.Zero(t, count(t, pool, `SELECT count(*) FROM surehook_ended`), "left out")
	require.Equal(t, members, count(t, pool, `SELECT count(*) FROM surehook_attempts WHERE class = ''`), "sent again with success")
	require.Zero(t, count(t, pool, `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription
		HAVING count(*) FILTER (WHERE class = 'timeout') <> 1 OR count(*) FILTER (WHERE class = '') <> 1
			OR count(*) FILTER (WHERE class = 'interrupted') <> count(*) - 2 OR max(number) <> count(*)) x`),
		"deliveries with other attempts than the one before, the one of the replay, and interrupted ones")
	require.Equal(t, 1, count(t, pool, `SELECT count(*) FROM surehook_notices WHERE kind = 'replay.finished'`))
	require.Zero(t, count(t, pool, `SELECT count(*) FROM surehook_heads WHERE pending <> 0 OR waiting <> 0 OR leased <> 0 OR dead <> 0`))
}

func count(t testing.TB, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n), query)
	return n
}

// deadLetters writes dead letters of ten subscriptions, with one attempt each, straight
// into the tables: that is much faster.
func deadLetters(t *testing.T, s *postgres.Store[pgx.Tx], pool *pgxpool.Pool, n int) {
	t.Helper()
	keys, err := replayKeys()
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	owners := make([]string, 10)
	for i := range owners {
		owners[i] = fmt.Sprintf("sub_%d", i)
		_, _, err := reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: owners[i]})
		require.NoError(t, err)
		_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: owners[i], URL: "https://example.com/", EventTypes: []string{"subscriber.*"}})
		require.NoError(t, err)
	}
	for n > 0 {
		drafts := make([]sender.Draft, min(n, 1000))
		for i := range drafts {
			drafts[i] = replayDraft(owners[i%len(owners)])
		}
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
			_, err := s.PublishTx(t.Context(), tx, drafts)
			return err
		}))
		n -= len(drafts)
	}
	expandEvents(t, s)
	for _, query := range []string{
		`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error)
			SELECT event, subscription, 1, due, 1, 0, 'timeout', 'not in time' FROM surehook_pending`,
		`INSERT INTO surehook_ended (subscription, event, status, class, ended_at) SELECT subscription, event, 'dead_lettered', 'timeout', due FROM surehook_pending ORDER BY event`,
		`UPDATE surehook_heads SET dead = pending, pending = 0`,
		`DELETE FROM surehook_pending`,
	} {
		_, err := pool.Exec(t.Context(), query)
		require.NoError(t, err)
	}
}

// killReplaying runs two processes and kills them, one after the other, somewhere in
// the next twelfth of a replay. It does not check how they share the work: one of them
// may get all of it.
func killReplaying(t *testing.T, dsn, schema string, members int) {
	t.Helper()
	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, reads.Close()) }()
	first, firstSaid := startReplaying(t, dsn, schema, writes)
	second, secondSaid := startReplaying(t, dsn, schema, writes)
	require.NoError(t, writes.Close(), "when both are gone, the lines end")
	lines := bufio.NewScanner(reads)
	for range 1 + rand.N(members/12/replayLine) {
		require.True(t, lines.Scan(), "%s\n%s", firstSaid, secondSaid)
	}
	for _, p := range []struct {
		cmd  *exec.Cmd
		said *strings.Builder
	}{{first, firstSaid}, {second, secondSaid}} {
		// The pause waits for nothing: it varies the moment of the kill.
		<-time.After(rand.N(20 * time.Millisecond))
		_ = p.cmd.Process.Kill()
		require.ErrorContains(t, p.cmd.Wait(), "signal: killed", p.said.String())
	}
}

func startReplaying(t *testing.T, dsn, schema string, lines *os.File) (cmd *exec.Cmd, said *strings.Builder) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), replayingDSN+"="+dsn, replayingSchema+"="+schema)
	said = &strings.Builder{}
	cmd.Stderr, cmd.Stdout = said, lines
	require.NoError(t, cmd.Start())
	return cmd, said
}
