package migrate_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/migrate"
)

func open(t *testing.T, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "a.db") }

// set gives the first n of four files. The third needs what the second made, and
// none can be applied twice.
func set(n int) fstest.MapFS {
	all := []struct{ name, sql string }{
		{"001_a.sql", "CREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES (1);"},
		{"002_b.sql", "CREATE TABLE b (x INTEGER); -- several\nCREATE INDEX b_x ON b (x);"},
		{"003_fill.sql", "INSERT INTO b SELECT x FROM a; UPDATE a SET x = x + 1;"},
		{"004_fill.sql", "UPDATE a SET x = x + 10;"},
	}
	fsys := fstest.MapFS{}
	for _, f := range all[:n] {
		fsys[f.name] = &fstest.MapFile{Data: []byte(f.sql)}
	}
	return fsys
}

func number(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(context.WithoutCancel(t.Context()), query, args...).Scan(&n))
	return n
}

func TestSQLiteInSteps(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	before := time.Now()
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(2)))
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(4)))
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(4)))
	require.Equal(t, 12, number(t, db, "SELECT x FROM a"))
	require.Equal(t, 4, number(t, db, "SELECT count(*) FROM surehook_migrations WHERE set_name = 'one'"))
	at := time.UnixMicro(int64(number(t, db, "SELECT min(applied_at) FROM surehook_migrations")))
	require.WithinRange(t, at, before.Add(-time.Second), time.Now())

	other := fstest.MapFS{"001_c.sql": {Data: []byte("CREATE TABLE c (x INTEGER)")}}
	require.NoError(t, migrate.SQLite(ctx, db, "two", other), "sets are numbered apart")
	require.Equal(t, 1, number(t, db, "SELECT count(*) FROM surehook_migrations WHERE set_name = 'two'"))
}

func TestSQLiteNewerDatabase(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(3)))
	require.ErrorContains(t, migrate.SQLite(ctx, db, "one", set(2)),
		"one: the database is at version 3 and this release knows 2: run the newer release")
	require.Equal(t, 2, number(t, db, "SELECT x FROM a"))
}

func TestSQLiteFailureLeavesTheFilesBefore(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	fsys := set(2)
	fsys["003_bad.sql"] = &fstest.MapFile{Data: []byte("UPDATE a SET x = 99; INSERT INTO absent VALUES (1);")}
	err := migrate.SQLite(ctx, db, "one", fsys)
	require.ErrorContains(t, err, "003_bad.sql")
	require.ErrorContains(t, err, "absent")
	require.Equal(t, 1, number(t, db, "SELECT x FROM a"))
	require.Equal(t, 2, number(t, db, "SELECT max(version) FROM surehook_migrations"))

	db.SetMaxOpenConns(1) // the one connection must not be left in a transaction
	_, err = db.ExecContext(ctx, "BEGIN IMMEDIATE; ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(3)))
}

func TestSQLiteManyStartAtOnce(t *testing.T) {
	p := path(t)
	var g errgroup.Group
	for _, params := range []string{
		"", "_txlock=immediate", "_pragma=busy_timeout(5000)", "_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)",
		"", "_txlock=exclusive", "", "_pragma=busy_timeout(10)",
	} {
		db := open(t, p, params)
		g.Go(func() error { return migrate.SQLite(t.Context(), db, "one", set(4)) })
	}
	require.NoError(t, g.Wait())
	require.Equal(t, 12, number(t, open(t, p, ""), "SELECT x FROM a"), "each file once")
}

func TestSQLiteWaitsForWritersAndNotForEver(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, writer *sql.Conn, cancel func(), done chan error)
	}{
		{"writer ends", func(t *testing.T, writer *sql.Conn, _ func(), done chan error) {
			_, err := writer.ExecContext(t.Context(), "COMMIT")
			require.NoError(t, err)
			require.NoError(t, <-done)
		}},
		{"writer stays", func(t *testing.T, _ *sql.Conn, _ func(), done chan error) {
			start := time.Now()
			err := <-done
			require.ErrorContains(t, err, "one: still locked by another connection after 15s")
			require.Equal(t, dberr.Retry, dberr.Classify(err))
			require.InDelta(t, 15, time.Since(start).Seconds(), 1)
		}},
		{"cancelled", func(t *testing.T, _ *sql.Conn, cancel func(), done chan error) {
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := path(t)
				db, other := open(t, p, ""), open(t, p, "")
				writer, err := other.Conn(t.Context())
				require.NoError(t, err)
				defer writer.Close()
				_, err = writer.ExecContext(t.Context(), "BEGIN IMMEDIATE")
				require.NoError(t, err)

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- migrate.SQLite(ctx, db, "one", set(1)) }()
				synctest.Wait()
				require.Empty(t, done, "it waits")
				c.end(t, writer, cancel, done)
			})
		})
	}
}

// Those who are up to date start without asking for the write lock.
func TestSQLiteUpToDateTakesNoLock(t *testing.T) {
	p := path(t)
	db := open(t, p, "")
	require.NoError(t, migrate.SQLite(t.Context(), db, "one", set(2)))
	writer, err := open(t, p, "").Conn(t.Context())
	require.NoError(t, err)
	defer writer.Close()
	_, err = writer.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	require.NoError(t, migrate.SQLite(t.Context(), db, "one", set(2)))
}

func TestSQLiteRefusesBadSets(t *testing.T) {
	db := open(t, path(t), "")
	for want, names := range map[string][]string{
		"there are no migrations":                   {},
		`"002_b.sql" comes where number 1 must be`:  {"002_b.sql"},
		`"003_c.sql" comes where number 2 must be`:  {"001_a.sql", "003_c.sql"},
		`"001_b.sql" comes where number 2 must be`:  {"001_a.sql", "001_b.sql"},
		`"readme.md" is not a migration`:            {"001_a.sql", "readme.md"},
		`"1_a.sql" is not a migration: the name mu`: {"1_a.sql"},
	} {
		fsys := fstest.MapFS{}
		for _, n := range names {
			fsys[n] = &fstest.MapFile{Data: []byte("CREATE TABLE x (a INTEGER)")}
		}
		require.ErrorContains(t, migrate.SQLite(t.Context(), db, "one", fsys), want)
	}
	require.Zero(t, number(t, db, "SELECT count(*) FROM sqlite_master"), "nothing was touched")
}
