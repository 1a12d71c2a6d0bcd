package kill_test

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	inboxPostgres "github.com/surehook/surehook/receiver/inbox/postgres"
	inboxSQLite "github.com/surehook/surehook/receiver/inbox/sqlite"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// app is an application's database with all tables that a receiver and an inbox need.
type app[Tx any] struct {
	inTx   receiver.InTx[Tx]
	dedup  dedup.Store[Tx]
	store  inbox.Store[Tx]
	effect receiver.HandlerFunc[Tx]
}

func appOnSQLite(db *sql.DB) app[*sql.Tx] {
	return app[*sql.Tx]{dedupSQLite.InTx(db), dedupSQLite.New(), inboxSQLite.New(), func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID)
		return err
	}}
}

func appOnPostgres(t testing.TB, at schema) app[pgx.Tx] {
	pool := openPool(t, at)
	markers, err := dedupPostgres.New(nil)
	require.NoError(t, err)
	store, err := inboxPostgres.New(nil)
	require.NoError(t, err)
	inTx := func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
	return app[pgx.Tx]{inTx, markers, store, func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
		_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", ev.ID)
		return err
	}}
}

// hasty is a store whose leases are always short.
type hasty[Tx any] struct{ inbox.Store[Tx] }

func (h hasty[Tx]) ClaimTx(ctx context.Context, tx Tx, scope string, limit int, _ time.Duration) ([]inbox.Claim, error) {
	return h.Store.ClaimTx(ctx, tx, scope, limit, 2*time.Second)
}

var (
	takingOnSQLite = killtest.NewChild("inbox on SQLite", func(ctx context.Context, path string) error {
		return take(ctx, appOnSQLite(openSQLite(child{}, path)))
	})
	takingOnPostgres = killtest.NewChild("inbox on PostgreSQL", func(ctx context.Context, at schema) error {
		return take(ctx, appOnPostgres(child{}, at))
	})
)

// take takes each event twice, applies the events, and prints the acknowledged ones.
func take[Tx any](ctx context.Context, a app[Tx]) error {
	secret := signing.GenerateSecret()
	in, err := inbox.New(newReceiver(child{}, a.inTx, a.dedup, secret), a.inTx, hasty[Tx]{a.store}, receiver.State(a.effect), &inbox.Config{Workers: 2, Logger: quiet})
	if err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- in.Run(ctx) }()
	sender, handler := receivertest.NewSender(child{}, secret, nil), in.Handler()
	for {
		select {
		case err := <-ran:
			return err
		default:
		}
		ev := receivertest.NewEvent("thing", receivertest.NewEvent("thing", "a", 1).ID, 1)
		for range 2 {
			if sender.Request(ev).Serve(handler).Status == 200 {
				fmt.Println(ev.ID)
			}
		}
	}
}

// Processes that take events and apply them share an inbox. Every event that one of them
// has acknowledged is applied in the end, and no event has two effects.
func TestInbox(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "app.db")
		db := openSQLite(t, path)
		require.NoError(t, dedupSQLite.Migrate(t.Context(), db))
		require.NoError(t, inboxSQLite.Migrate(t.Context(), db))
		_, err := db.Exec("CREATE TABLE effects (no INTEGER PRIMARY KEY, id TEXT NOT NULL)")
		require.NoError(t, err)
		testInbox(t, db, appOnSQLite(db), func(int) *exec.Cmd { return takingOnSQLite.Command(path) })
		intact(t, db)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, db := testSchema(t)
		require.NoError(t, dedupPostgres.Migrate(t.Context(), db, nil))
		require.NoError(t, inboxPostgres.Migrate(t.Context(), db, nil))
		_, err := db.Exec("CREATE TABLE effects (no bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL)")
		require.NoError(t, err)
		testInbox(t, db, appOnPostgres(t, at), func(int) *exec.Cmd { return takingOnPostgres.Command(at) })
	})
}

func testInbox[Tx any](t *testing.T, db *sql.DB, a app[Tx], child func(int) *exec.Cmd) {
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	all := func() (ids []string) {
		mu.Lock()
		defer mu.Unlock()
		for id := range acknowledged {
			ids = append(ids, id)
		}
		return ids
	}
	within, rounds := 0, 12
	if race.Enabled { // it is processes that race, and not their code
		rounds = 6
	}
	killtest.Run(t, killtest.Case{
		Child: child, Rounds: rounds, Processes: 3, Replace: true,
		Point: killtest.Lines(10, 50),
		Heard: func(id string) {
			mu.Lock()
			defer mu.Unlock()
			acknowledged[id] = true
		},
		Check: func() {
			ids := all()
			// This is one statement, because the others go on meanwhile.
			kept := map[string]bool{}
			for _, id := range column(t, db, "SELECT id FROM effects UNION ALL SELECT id FROM surehook_inbox_events") {
				kept[id] = true
			}
			for _, id := range ids {
				require.True(t, kept[id], "an acknowledged event is neither applied nor in the inbox")
			}
			if count(t, db, "SELECT count(*) FROM surehook_inbox_events WHERE attempt > 0") > 0 {
				within++
			}
		},
	})
	require.Positive(t, within, "none ever died with an event in its hands")

	left := count(t, db, "SELECT count(*) FROM surehook_inbox_events")
	in, err := inbox.New(newReceiver(t, a.inTx, a.dedup, signing.GenerateSecret()), a.inTx, a.store, receiver.State(a.effect), &inbox.Config{Poll: 5 * time.Millisecond, Logger: quiet})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- in.Run(ctx) }()
	require.Eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM surehook_inbox_events") == 0 }, 5*time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ran)
	effects := column(t, db, "SELECT id FROM effects")
	slices.Sort(effects)
	require.Equal(t, slices.Compact(slices.Clone(effects)), effects, "an event had two effects")
	for id := range acknowledged {
		_, applied := slices.BinarySearch(effects, id)
		require.True(t, applied, "an acknowledged event was lost")
	}
	t.Logf("%d times killed with events in hand; %d events acknowledged, %d applied, %d of them after the last kill",
		within, len(acknowledged), len(effects), left)
}
