package kill_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
)

var dedupOnSQLite = killtest.NewChild("dedup on SQLite", func(ctx context.Context, path string) error {
	db, s := openSQLite(child{}, path), dedupSQLite.New()
	return applyForEver(ctx, receiver.SQL(db, nil), func(ctx context.Context, tx *sql.Tx, id string, obj dedup.Object, version int64) error {
		fresh, err := s.Mark(ctx, tx, "test", id, time.Now())
		if err != nil || !fresh {
			return err
		}
		newer, err := s.Advance(ctx, tx, "test", obj, version)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO effects (id, object, version, newer) VALUES (?, ?, ?, ?)", id, obj.ID, version, newer)
		return err
	})
})

var dedupOnPostgres = killtest.NewChild("dedup on PostgreSQL", func(ctx context.Context, at schema) error {
	pool := openPool(child{}, at)
	s, err := dedupPostgres.New(&dedupPostgres.Config{Schema: at.Name})
	if err != nil {
		return err
	}
	inTx := func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
	return applyForEver(ctx, inTx, func(ctx context.Context, tx pgx.Tx, id string, obj dedup.Object, version int64) error {
		fresh, newer, err := s.MarkAndAdvance(ctx, tx, "test", id, time.Now(), obj, version)
		if err != nil || !fresh {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO effects (id, object, version, newer) VALUES ($1, $2, $3, $4)", id, obj.ID, version, newer)
		return err
	})
})

// applyForEver marks events and writes their effects, in several goroutines, and prints
// the number of each event after its commit.
func applyForEver[Tx any](ctx context.Context, inTx receiver.InTx[Tx], apply func(ctx context.Context, tx Tx, id string, obj dedup.Object, version int64) error) error {
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for {
				n := rand.IntN(2000)
				err := inTx(ctx, func(tx Tx) error {
					return apply(ctx, tx, strconv.Itoa(n), dedup.Object{Type: "account", ID: strconv.Itoa(n % 10)}, int64(n+1))
				})
				switch {
				case err == nil:
					fmt.Println(n)
				case !errors.Is(err, dedup.ErrRetryTx):
					return err
				}
			}
		})
	}
	return g.Wait()
}

// There is a marker if and only if there is its effect, and everything that was reported as
// committed is there.
func TestDedup(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a.db")
		db := openSQLite(t, path)
		require.NoError(t, dedupSQLite.Migrate(t.Context(), db))
		testDedup(t, db, nil, func() { intact(t, db) }, func(int) *exec.Cmd { return dedupOnSQLite.Command(path) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, db := testSchema(t)
		require.NoError(t, dedupPostgres.Migrate(t.Context(), db, &dedupPostgres.Config{Schema: at.Name}))
		// The server may still be ending the work that the process had begun.
		testDedup(t, db, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}, func() {}, func(int) *exec.Cmd { return dedupOnPostgres.Command(at) })
		require.Eventually(t, func() bool { // otherwise the schema could not be dropped
			return count(t, db, `SELECT count(*) FROM pg_locks WHERE relation = 'effects'::regclass AND pid <> pg_backend_pid()`) == 0
		}, 5*time.Minute, time.Millisecond)
	})
}

// testDedup looks at a database after each kill, in one snapshot.
func testDedup(t *testing.T, db *sql.DB, snapshot *sql.TxOptions, look func(), child func(int) *exec.Cmd) {
	_, err := db.ExecContext(t.Context(), "CREATE TABLE effects (id text PRIMARY KEY, object text, version bigint, newer boolean)")
	require.NoError(t, err)
	committed, rounds := map[string]bool{}, 12
	if race.Enabled { // it is processes that race, and not their code
		rounds = 6
	}
	killtest.Run(t, killtest.Case{
		Child: child, Rounds: rounds,
		Point: killtest.Lines(1, 60), // between two commits, or in one: the process does not wait for us
		Heard: func(line string) { committed[line] = true },
		Check: func() {
			look()
			tx, err := db.BeginTx(t.Context(), snapshot)
			require.NoError(t, err)
			defer tx.Rollback()
			effects := column(t, tx, "SELECT id FROM effects ORDER BY id")
			require.Equal(t, effects, column(t, tx, "SELECT id FROM surehook_dedup_markers ORDER BY id"), "marker if and only if effect")
			there := map[string]bool{}
			for _, id := range effects {
				there[id] = true
			}
			for id := range committed {
				require.True(t, there[id], "%s was committed", id)
			}
			require.Equal(t,
				column(t, tx, "SELECT object || ' ' || max(version) FROM effects WHERE newer GROUP BY object ORDER BY object"),
				column(t, tx, "SELECT object_id || ' ' || version FROM surehook_dedup_versions ORDER BY object_id"))
		},
	})
	require.Greater(t, len(committed), rounds)
}
