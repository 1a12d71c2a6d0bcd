package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/internal/niltest"
	"github.com/surehook/surehook/dedup/sqlite"
)

const (
	pragmas   = "_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
	immediate = "_txlock=immediate&" + pragmas
)

func open(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, sqlite.Migrate(context.Background(), db))
	return db
}

func inTx(db *sql.DB) func(context.Context, func(*sql.Tx) error) error {
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// lose moves the file of a database away.
func lose(db *sql.DB, path string) func(t *testing.T) (back func()) {
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return nil
	}
	return func(t *testing.T) (back func()) {
		db.SetMaxOpenConns(1)
		require.NoError(t, os.Rename(path, path+".moved"))
		return func() { require.NoError(t, os.Rename(path+".moved", path)) }
	}
}

func TestStore(t *testing.T) {
	for name, params := range map[string]string{
		"immediate": immediate,
		"deferred":  pragmas,
		// Every lost race is an error at once.
		"deferred without waiting": "_pragma=busy_timeout(0)&_pragma=journal_mode(wal)&_pragma=synchronous(full)",
		"rollback journal":         "_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=synchronous(full)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			var harness func(t *testing.T) deduptest.Harness[*sql.Tx]
			harness = func(t *testing.T) deduptest.Harness[*sql.Tx] {
				db := open(t, path, params)
				h := deduptest.Harness[*sql.Tx]{Store: sqlite.New(), InTx: inTx(db), Reopen: harness, Lose: lose(db, path)}
				if params == immediate {
					h.InTx = sqlite.InTx(db)
				}
				return h
			}
			deduptest.Run(t, harness)
		})
	}
}

// If a transaction read before it wrote, and lost, the error asks the caller to run it
// again, and still contains the driver's error.
func TestOldSnapshotIsErrRetryTx(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), pragmas)
	s, ctx, obj := sqlite.New(), t.Context(), dedup.Object{Type: "subscriber", ID: "1"}
	late, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer late.Rollback()
	_, err = s.Version(ctx, late, "test", obj)
	require.NoError(t, err)
	require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) error {
		_, err := s.Mark(ctx, tx, "test", "a", time.Now())
		return err
	}))
	for what, err := range map[string]error{
		"Mark":     second(s.Mark(ctx, late, "test", "b", time.Now())),
		"Advance":  second(s.Advance(ctx, late, "test", obj, 1)),
		"Prune":    second(s.Prune(ctx, late, time.Now(), 1)),
		"SetAside": s.SetAside(ctx, late, dedup.DeadLetter{Scope: "test", ID: "a", Type: "x", At: time.Now()}),
		"Discard":  s.Discard(ctx, late, "test", "a"),

		"AskReapply":    second(s.AskReapply(ctx, late, dedup.Reapply{Scope: "test", ID: "a", At: time.Now()})),
		"CancelReapply": s.CancelReapply(ctx, late, "test", 1),
		"TakeReapply":   second(s.TakeReapply(ctx, late, "test", "a", obj)),
		"AdvanceAgain":  second(s.AdvanceAgain(ctx, late, "test", obj, 1)),
	} {
		require.ErrorIs(t, err, dedup.ErrRetryTx, what)
		var cause *driver.Error
		require.True(t, errors.As(err, &cause), what)
		require.Equal(t, 517, cause.Code(), "%s: SQLITE_BUSY_SNAPSHOT", what)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNilTransaction(t *testing.T) { niltest.Refused(t, sqlite.New()) }

// Without the tables the error says which one is missing.
func TestNotMigrated(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer db.Close()
	err = inTx(db)(t.Context(), func(tx *sql.Tx) error {
		_, err := sqlite.New().Mark(t.Context(), tx, "test", "a", time.Now())
		return err
	})
	require.ErrorContains(t, err, "dedup: marking an event: ")
	require.ErrorContains(t, err, "surehook_dedup_markers")
}

// The cost of pruning must not grow with the markers that stay.
func TestPruneUsesTheIndexes(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), pragmas)
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+sqlite.PruneQuery, 1, 1)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan, "SEARCH surehook_dedup_markers USING PRIMARY KEY (scope=? AND id=?)", "%q", plan)
	require.Contains(t, plan, "SEARCH surehook_dedup_markers USING COVERING INDEX surehook_dedup_markers_by_time (marked_at<?)", "%q", plan)
	for _, step := range plan {
		require.NotContains(t, step, "SCAN")
		require.NotContains(t, step, "TEMP B-TREE")
	}
}

func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path, pragmas)
	require.NoError(t, sqlite.Migrate(t.Context(), db), "again")
	var tables string
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT group_concat(name) FROM
		(SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name)`).Scan(&tables))
	require.Equal(t, "surehook_dedup_dead_letters,surehook_dedup_markers,surehook_dedup_reapplies,surehook_dedup_versions,surehook_migrations", tables)
	names, err := fs.Glob(sqlite.Migrations(), "*")
	require.NoError(t, err)
	require.Equal(t, []string{"001_dedup.sql", "002_reapplies.sql"}, names)
}
