package kill_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// replayLine is how many deliveries a process records for each line that it prints.
const replayLine = 100

var (
	replayingOnSQLite = killtest.NewChild("replay on SQLite", func(ctx context.Context, path string) error {
		s, err := sqlite.New(openSQLite(child{}, path), nil)
		if err != nil {
			return err
		}
		return runDispatcher(ctx, s)
	})
	replayingOnPostgres = killtest.NewChild("replay on PostgreSQL", func(ctx context.Context, at schema) error {
		s, err := postgres.New(openPool(child{}, at), &postgres.Config{Schema: at.Name})
		if err != nil {
			return err
		}
		return runDispatcher(ctx, s)
	})
)

func runDispatcher(ctx context.Context, s dispatch.Store) error {
	recorded := 0
	return replayDispatcher(child{}, s, dispatch.Hooks{Recorded: func(context.Context, *dispatch.Recorded) {
		if recorded++; recorded%replayLine == 0 {
			fmt.Println("more")
		}
	}}).Run(ctx)
}

// accepts answers every POST at once.
type accepts struct{}

func (accepts) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

func replayDispatcher(t testing.TB, s dispatch.Store, hooks dispatch.Hooks) *dispatch.Dispatcher {
	timeout := 100 * time.Millisecond
	if race.Enabled { // a step on SQLite can take longer than five of these then, and would lose what it claims
		timeout *= 8
	}
	d, err := dispatch.New(s, testKeys(t), &dispatch.Config{
		UnguardedTransport: accepts{}, Timeout: timeout, Lease: 5 * timeout, Hooks: hooks, Logger: quiet,
	})
	require.NoError(t, err)
	return d
}

// Processes step a replay by turns. No member is left out, and no member is sent twice
// except those that were in flight.
func TestReplay(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		members := 8_000
		if race.Enabled { // it makes SQLite many times slower
			members = 3_000
		}
		path := filepath.Join(t.TempDir(), "a.db")
		db := openSQLite(t, path)
		s, err := sqlite.New(db, nil)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		testReplay(t, s, db, members, 1, "0", func(int) *exec.Cmd { return replayingOnSQLite.Command(path) })
		intact(t, db)
		oneStateEach(t, db)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, db := testSchema(t)
		s, err := postgres.New(openPool(t, at), &postgres.Config{Schema: at.Name})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		// The two need not share the work: one of them may get all of it.
		testReplay(t, s, db, 8_000, 2, "NULL", func(int) *exec.Cmd { return replayingOnPostgres.Command(at) })
	})
}

// never is the value in the store's tables for no time.
func testReplay[Tx any](t *testing.T, s storetest.Store[Tx], db *sql.DB, members, processes int, never string, child func(int) *exec.Cmd) {
	kills := 5
	if race.Enabled { // it is processes that race, and not their code
		kills = 3
	}
	deadLetters(t, s, db, members, never)
	replays, err := replay.New(s, nil)
	require.NoError(t, err)
	begun := time.Now()
	r, err := replays.Create(t.Context(), replay.Request{})
	require.NoError(t, err)
	require.EqualValues(t, members, r.Matched)
	t.Logf("created in %s", time.Since(begun).Round(time.Millisecond))

	begun = time.Now()
	amid := 0
	killtest.Run(t, killtest.Case{
		Child: child, Rounds: kills, Processes: processes,
		Point:  killtest.Lines(1, members/12/replayLine), // somewhere in the next twelfth
		Within: 20 * time.Millisecond,
		Check: func() {
			r, err = replays.Get(t.Context(), r.ID)
			require.NoError(t, err)
			if r.Status == replay.Running {
				amid++
			}
		},
	})
	// On a busy machine a process is killed late, and may have done all the rest.
	require.Positive(t, amid, "kills before its end")
	t.Logf("%d of them admitted when the last process was killed, %d kills before the end", r.Admitted, amid)
	d := replayDispatcher(t, s, dispatch.Hooks{})
	const live = `SELECT (SELECT count(*) FROM surehook_pending) + (SELECT count(*) FROM surehook_leases) + (SELECT count(*) FROM surehook_waiting)`
	require.Eventually(t, func() bool { // the leases of the killed end
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		r, err = replays.Get(t.Context(), r.ID)
		require.NoError(t, err)
		return r.Status != replay.Running && count(t, db, live) == 0
	}, 5*time.Minute, 20*time.Millisecond)
	interrupted := count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`)
	t.Logf("%d sent again in %s, %d attempts interrupted", members, time.Since(begun).Round(time.Millisecond), interrupted)

	require.Equal(t, replay.Finished, r.Status)
	require.EqualValues(t, members, r.Admitted)
	require.Zero(t, r.Skipped)
	require.NotZero(t, interrupted, "kills between a claim and its result")
	require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_ended`), "left out")
	require.Equal(t, members, count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = ''`), "sent again with success")
	require.Zero(t, count(t, db, `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription
		HAVING count(*) FILTER (WHERE class = 'timeout') <> 1 OR count(*) FILTER (WHERE class = '') <> 1
			OR count(*) FILTER (WHERE class = 'interrupted') <> count(*) - 2 OR max(number) <> count(*)) x`),
		"deliveries with other attempts than the one before, the one of the replay, and interrupted ones")
	require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_notices WHERE kind = 'replay.finished'`))
	require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_heads WHERE pending <> 0 OR waiting <> 0 OR leased <> 0 OR dead <> 0`))
}

// deadLetters writes dead letters of ten subscriptions, with one attempt each, straight
// into the tables: that is much faster.
func deadLetters[Tx any](t *testing.T, s storetest.Store[Tx], db *sql.DB, n int, never string) {
	t.Helper()
	reg, err := sender.NewRegistry(s, testKeys(t), nil)
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
			drafts[i] = draft(owners[i%len(owners)])
		}
		require.NoError(t, s.InTx(t.Context(), func(tx Tx) error {
			_, err := s.PublishTx(t.Context(), tx, drafts)
			return err
		}))
		n -= len(drafts)
	}
	expandAll(t, s)
	for _, query := range []string{
		`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error, snippet, next_at)
			SELECT event, subscription, 1, due, 1, 0, 'timeout', 'not in time', NULL, ` + never + ` FROM surehook_pending`,
		`INSERT INTO surehook_ended (subscription, event, status, class, ended_at) SELECT subscription, event, 'dead_lettered', 'timeout', due FROM surehook_pending ORDER BY event`,
		`UPDATE surehook_heads SET dead = pending, pending = 0`,
		`DELETE FROM surehook_pending`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
}

// draft returns an event with an object of its own.
func draft(subscriber string) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{
		ID: id, Type: "subscriber.updated", Object: sender.Object{Type: "subscriber", ID: id}, Subscriber: subscriber,
		BodyHead: []byte(`{"id":"` + id + `","version":`), BodyTail: []byte(`}`),
	}
}

func expandAll(t *testing.T, s dispatch.Store) {
	t.Helper()
	for more := true; more; {
		x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		more = x.More || x.Events > 0
	}
}
