package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
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

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
)

const (
	replayingFile = "SUREHOOK_TEST_REPLAYING_FILE"
	replayKills   = 5
)

// accepts answers every POST at once.
type accepts struct{}

func (accepts) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

func replayKeys() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
}

func replayDispatcher(s *sqlite.Store, hooks sender.Hooks) (*sender.Dispatcher, error) {
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
func dispatch(p string) error {
	db, err := sql.Open("sqlite", "file:"+p+"?"+fit)
	if err != nil {
		return err
	}
	s, err := sqlite.New(db, nil)
	if err != nil {
		return err
	}
	recorded := 0
	d, err := replayDispatcher(s, sender.Hooks{Recorded: func(context.Context, *sender.Recorded) {
		if recorded++; recorded%500 == 0 {
			_, _ = os.Stdout.WriteString("500 more\n")
		}
	}})
	if err != nil {
		return err
	}
	return d.Run(context.Background())
}

// If a process is killed at any moment of a replay, no member is left out, and none is
// sent twice except those that were in flight.
func TestReplayKilled(t *testing.T) {
	members := 20_000
	if race.Enabled { // it makes SQLite many times slower
		members = 8_000
	}
	p := path(t)
	db := open(t, p, fit)
	s := newStore(t, db, time.Now)
	deadLetters(t, s, db, members)
	replays, err := sender.NewReplays(s, nil)
	require.NoError(t, err)
	begun := time.Now()
	r, err := replays.Create(t.Context(), sender.NewReplay{})
	require.NoError(t, err)
	require.EqualValues(t, members, r.Matched)
	t.Logf("created in %s", time.Since(begun).Round(time.Millisecond))

	begun = time.Now()
	for range replayKills {
		killReplaying(t, p, members)
	}
	r, err = replays.Get(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, sender.ReplayRunning, r.Status, "all kills came before its end")
	d, err := replayDispatcher(s, sender.Hooks{})
	require.NoError(t, err)
	const live = `SELECT (SELECT count(*) FROM surehook_pending) + (SELECT count(*) FROM surehook_leases) + (SELECT count(*) FROM surehook_waiting)`
	for r.Status == sender.ReplayRunning || count(t, db, live) > 0 {
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		<-time.After(20 * time.Millisecond) // the leases of the killed end
	}
	interrupted := count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`)
	t.Logf("%d sent again in %s, %d attempts interrupted", members, time.Since(begun).Round(time.Millisecond), interrupted)

	require.Equal(t, sender.ReplayFinished, r.Status)
	require.EqualValues(t, members, r.Admitted)
	require.Zero(t, r.Skipped)
	require.NotZero(t, interrupted, "kills between a claim and its result")
	require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_ended`), "left out")
	require.Equal(t, members, count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = ''`), "sent again with success")
	require.Zero(t, count(t, db, `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription
		HAVING sum(class = 'timeout') <> 1 OR sum(class = '') <> 1 OR sum(class = 'interrupted') <> count(*) - 2 OR max(number) <> count(*))`),
		"deliveries with other attempts than the one before, the one of the replay, and interrupted ones")
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_notices WHERE kind = 'replay.finished'`))
	require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_heads WHERE pending + waiting + leased + dead <> 0`))
	oneStateEach(t, db)
}

// deadLetters writes dead letters of ten subscriptions, with one attempt each, straight
// into the tables: that is much faster.
func deadLetters(t *testing.T, s *sqlite.Store, db *sql.DB, n int) {
	t.Helper()
	keys, err := replayKeys()
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	var owners []string
	for i := range 10 {
		owner := fmt.Sprintf("sub_%d", i)
		_, _, err := reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: owner})
		require.NoError(t, err)
		_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: owner, URL: "https://example.com/", EventTypes: []string{"subscriber.*"}})
		require.NoError(t, err)
		owners = append(owners, owner)
	}
	publish(t, s, n, 0, owners)
	expandAll(t, s)
	for _, query := range []string{
		`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error, snippet, next_at)
			SELECT event, subscription, 1, due, 1, 0, 'timeout', 'not in time', NULL, 0 FROM surehook_pending`,
		`INSERT INTO surehook_ended (subscription, event, status, class, ended_at) SELECT subscription, event, 'dead_lettered', 'timeout', due FROM surehook_pending ORDER BY event`,
		`UPDATE surehook_heads SET dead = pending, pending = 0`,
		`DELETE FROM surehook_pending`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
}

// killReplaying kills a process somewhere in the next twelfth of a replay.
func killReplaying(t *testing.T, p string, members int) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), replayingFile+"="+p)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 1 + rand.N(max(1, members/12/500)) {
		require.True(t, lines.Scan(), said.String())
	}
	// The pause waits for nothing: it varies the moment of the kill.
	<-time.After(rand.N(20 * time.Millisecond))
	_ = cmd.Process.Kill()
	require.ErrorContains(t, cmd.Wait(), "signal: killed", said.String())
}
