package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
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

// ledger is the beginning of a set's first file. It is the same on both databases.
const ledger = `CREATE TABLE IF NOT EXISTS surehook_migrations (set_name TEXT NOT NULL, version INTEGER NOT NULL, needs INTEGER NOT NULL,
	applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (set_name, version));
`

// migration is a file that records itself.
func migration(set string, version, needs int, sql string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "%s%s;\nINSERT INTO surehook_migrations (set_name, version, needs) VALUES ('%s', %d, %d);\n",
		ledger, sql, set, version, needs)}
}

// other is a set of one file.
func other() fstest.MapFS {
	return fstest.MapFS{"001_c.sql": migration("two", 1, 1, "CREATE TABLE c (x INTEGER)")}
}

// set returns the first n of four files. The third needs the second, and none can be
// applied twice. A release with only the first two can work with all four.
func set(n int) fstest.MapFS {
	all := []struct{ name, sql string }{
		{"001_a.sql", "CREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES (1)"},
		{"002_b.sql", "CREATE TABLE b (x INTEGER); -- several\nCREATE INDEX b_x ON b (x)"},
		{"003_fill.sql", "INSERT INTO b SELECT x FROM a; UPDATE a SET x = x + 1"},
		{"004_fill.sql", "UPDATE a SET x = x + 10"},
	}
	fsys := fstest.MapFS{}
	for i, f := range all[:n] {
		fsys[f.name] = migration("one", i+1, min(i+1, 2), f.sql)
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
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(2)))
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(4)))
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(4)))
	require.Equal(t, 12, number(t, db, "SELECT x FROM a"))
	require.Equal(t, 4, number(t, db, "SELECT count(*) FROM surehook_migrations WHERE set_name = 'one'"))
	require.NoError(t, migrate.SQLite(ctx, db, "two", other()), "sets are numbered apart")
	require.Equal(t, 1, number(t, db, "SELECT count(*) FROM surehook_migrations WHERE set_name = 'two'"))
}

// A release that is older than the tables starts if they say that it may, and changes
// nothing in them.
func TestSQLiteNewerDatabase(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	fits := func(known fstest.MapFS) error {
		l, err := migrate.ReadSQLite("one", func(query string, args ...any) migrate.Row { return db.QueryRowContext(ctx, query, args...) })
		require.NoError(t, err)
		return l.Fits(known)
	}
	require.EqualError(t, fits(set(1)), "migration 001_a.sql is missing: call Migrate before")
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(1)))
	require.NoError(t, fits(set(1)))
	require.EqualError(t, fits(set(4)), "migration 002_b.sql is missing: call Migrate before")

	require.NoError(t, migrate.SQLite(ctx, db, "one", set(3)))
	require.NoError(t, migrate.SQLite(ctx, db, "one", set(2)))
	require.NoError(t, fits(set(2)))
	require.Equal(t, 3, number(t, db, "SELECT max(version) FROM surehook_migrations"))
	const refused = "the database is at version 3, for releases that know version 2, and this one knows 1: run a newer release"
	require.EqualError(t, migrate.SQLite(ctx, db, "one", set(1)), "migrate: one: "+refused)
	require.EqualError(t, fits(set(1)), refused)
	require.Equal(t, 2, number(t, db, "SELECT x FROM a"))
}

func TestSQLiteTablesOfNoRelease(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	_, err := db.ExecContext(ctx, "CREATE TABLE surehook_migrations (set_name TEXT, version INTEGER, applied_at INTEGER); INSERT INTO surehook_migrations VALUES ('one', 1, 0)")
	require.NoError(t, err)
	require.ErrorContains(t, migrate.SQLite(ctx, db, "one", set(1)), "made before the first release: drop them and call Migrate")
}

// A file is not applied if it does not say which release may work with it, or says
// something impossible.
func TestSQLiteUnrecordedFile(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	for name, second := range map[string]*fstest.MapFile{
		"no row":              {Data: []byte("CREATE TABLE b (x INTEGER)")},
		"another version":     migration("one", 3, 1, "CREATE TABLE b (x INTEGER)"),
		"another set":         migration("two", 2, 1, "CREATE TABLE b (x INTEGER)"),
		"needs what is later": migration("one", 2, 3, "CREATE TABLE b (x INTEGER)"),
	} {
		t.Run(name, func(t *testing.T) {
			fsys := set(1)
			fsys["002_b.sql"] = second
			require.EqualError(t, migrate.SQLite(ctx, db, "one", fsys),
				"migrate: one: 002_b.sql must end with its row of surehook_migrations: version 2, and needs of 1 to 2")
			require.Zero(t, number(t, db, "SELECT count(*) FROM sqlite_master WHERE name = 'b'"))
		})
	}
}

func TestSQLiteFailureLeavesTheFilesBefore(t *testing.T) {
	db, ctx := open(t, path(t), ""), t.Context()
	fsys := set(2)
	fsys["003_bad.sql"] = migration("one", 3, 1, "UPDATE a SET x = 99; INSERT INTO absent VALUES (1)")
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

// A process whose tables are up to date starts without the write lock.
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
