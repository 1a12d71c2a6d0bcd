package migrate_test

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/pgtest"
)

// openPostgres gives a database whose connections have the settings, a list of
// names and values.
func openPostgres(t *testing.T, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", pgtest.With(pgtest.DSN(t), settings...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestPostgresInSteps(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(2)))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(4)))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(4)))
	require.Equal(t, 12, number(t, db, "SELECT x FROM "+schema+".a"))
	require.Equal(t, 4, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations WHERE set_name = 'one'"))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "two", other()), "sets are numbered apart")
	require.Equal(t, 1, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations WHERE set_name = 'two'"))
}

// A release that is older than the tables starts if they say that it may, and changes
// nothing in them.
func TestPostgresNewerDatabase(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	fits := func(known fstest.MapFS) error {
		table := schema + ".surehook_migrations"
		l, err := migrate.ReadPostgres(table, "one", func(query string, args ...any) migrate.Row {
			return db.QueryRowContext(ctx, strings.ReplaceAll(query, "surehook_migrations", table), args...)
		})
		require.NoError(t, err)
		return l.Fits(known)
	}
	require.EqualError(t, fits(set(1)), "migration 001_a.sql is missing: call Migrate before")
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	require.NoError(t, fits(set(1)))
	require.EqualError(t, fits(set(4)), "migration 002_b.sql is missing: call Migrate before")

	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(3)))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(2)))
	require.NoError(t, fits(set(2)))
	require.Equal(t, 3, number(t, db, "SELECT max(version) FROM "+schema+".surehook_migrations"))
	const refused = "the database is at version 3, for releases that know version 2, and this one knows 1: run a newer release"
	require.EqualError(t, migrate.Postgres(ctx, db, schema, "one", set(1)), "migrate: one: "+refused)
	require.EqualError(t, fits(set(1)), refused)
	require.Equal(t, 2, number(t, db, "SELECT x FROM "+schema+".a"))
}

func TestPostgresTablesOfNoRelease(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	_, err := db.ExecContext(ctx, "CREATE TABLE "+schema+".surehook_migrations (set_name text, version integer)")
	require.NoError(t, err)
	require.ErrorContains(t, migrate.Postgres(ctx, db, schema, "one", set(1)), "made before the first release: drop them and call Migrate")
}

func TestPostgresUnrecordedFile(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	fsys := set(1)
	fsys["002_b.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE b (x INTEGER)")}
	require.EqualError(t, migrate.Postgres(ctx, db, schema, "one", fsys),
		"migrate: one: 002_b.sql must end with its row of surehook_migrations: version 2, and needs of 1 to 2")
	require.Zero(t, number(t, db, "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'b'", schema))
}

func TestPostgresSchemas(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	first, second := pgtest.Schema(t, db), pgtest.Schema(t, db)
	absent := first + ` "Not" there`
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), `DROP SCHEMA "`+strings.ReplaceAll(absent, `"`, `""`)+`" CASCADE`)
		require.NoError(t, err)
	})
	require.NoError(t, migrate.Postgres(ctx, db, absent, "one", set(2)))
	require.Equal(t, 1, number(t, db, `SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'b'`, absent))

	require.NoError(t, migrate.Postgres(ctx, db, second, "one", set(2)))
	path := openPostgres(t, "search_path", `"no such schema",`+first+`,`+second)
	require.NoError(t, migrate.Postgres(ctx, path, "", "one", set(3)))
	require.Equal(t, 3, number(t, db, "SELECT max(version) FROM "+first+".surehook_migrations"), "the first that exists")
	require.Equal(t, 2, number(t, db, "SELECT max(version) FROM "+second+".surehook_migrations"))
	require.Equal(t, `"no such schema",`+first+`,`+second, text(t, path, "SHOW search_path"), "as it was")

	require.EqualError(t, migrate.Postgres(ctx, openPostgres(t, "search_path", "nowhere"), "", "one", set(1)),
		"migrate: one: no schema of search_path (nowhere) exists: create one or name the schema")
	require.EqualError(t, migrate.Postgres(ctx, db, strings.Repeat("x", 64), "one", set(1)),
		"migrate: one: schema has 64 bytes: at most 63 are allowed")
}

func TestPostgresFailureLeavesTheFilesBefore(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	fsys := set(2)
	fsys["003_bad.sql"] = migration("one", 3, 1, "UPDATE a SET x = 99; INSERT INTO absent VALUES (1)")
	err := migrate.Postgres(ctx, db, schema, "one", fsys)
	require.ErrorContains(t, err, "migrate: one: 003_bad.sql: ")
	require.ErrorContains(t, err, "absent")
	require.Equal(t, 1, number(t, db, "SELECT x FROM "+schema+".a"))
	require.Equal(t, 2, number(t, db, "SELECT max(version) FROM "+schema+".surehook_migrations"))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(3)))
}

// Both sets need the schema and the ledger. A process that has waited must not see an
// old state because of the server's default isolation level.
func TestPostgresManyStartAtOnce(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	_, err := db.ExecContext(ctx, "DROP SCHEMA "+schema)
	require.NoError(t, err)
	start := make(chan struct{})
	var g errgroup.Group
	for i := range 8 {
		db := openPostgres(t, "default_transaction_isolation", []string{"read committed", "serializable"}[i/2%2])
		require.NoError(t, db.PingContext(ctx))
		g.Go(func() error {
			<-start
			if i%2 == 0 {
				return migrate.Postgres(ctx, db, schema, "two", other())
			}
			return migrate.Postgres(ctx, db, schema, "one", set(4))
		})
	}
	close(start)
	require.NoError(t, g.Wait())
	require.Equal(t, 12, number(t, db, "SELECT x FROM "+schema+".a"), "each file once")
	require.Equal(t, 5, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations"))
}

// PostgreSQL knows the names of tables by what is committed now, and reads its catalogs by the
// statement's snapshot. Tables that come in between are not there yet, and not old ones.
func TestPostgresLedgerComesWhileItIsRead(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	before, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	require.NoError(t, err)
	defer before.Rollback()
	_, err = before.ExecContext(ctx, "SELECT 1 FROM pg_class LIMIT 1") // takes the snapshot
	require.NoError(t, err)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	l, err := migrate.ReadPostgres(schema+".surehook_migrations", "one", func(query string, args ...any) migrate.Row {
		return before.QueryRowContext(ctx, query, args...)
	})
	require.NoError(t, err)
	require.ErrorContains(t, l.Fits(set(1)), "is missing: call Migrate before")
}

func TestPostgresWaitsForOthersAndNotForEver(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	other, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer other.Rollback()
	_, err = other.ExecContext(ctx, "LOCK TABLE "+schema+".a")
	require.NoError(t, err)

	// A process whose tables are up to date waits for nothing, though it reads the
	// ledger.
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))

	ended, cancel := context.WithCancel(ctx)
	waiting := openPostgres(t, "application_name", schema)
	done := make(chan error, 2)
	go func() {
		done <- migrate.Postgres(ended, waiting, schema, "one", set(3)) // 003 reads table a
	}()
	waits := "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'"
	require.Eventually(t, func() bool { return number(t, db, waits, schema) == 1 }, time.Minute, time.Millisecond)
	go func() { done <- migrate.Postgres(ended, waiting, schema, "one", set(3)) }()
	require.Eventually(t, func() bool { return number(t, db, waits, schema) == 2 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, other.Rollback())
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(3)))
}

// A role that may only read can start if the tables are up to date.
func TestPostgresUpToDateWritesNothing(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(2)))
	reader := openPostgres(t, "default_transaction_read_only", "on")
	require.NoError(t, migrate.Postgres(ctx, reader, schema, "one", set(2)))
	require.ErrorContains(t, migrate.Postgres(ctx, reader, schema, "one", set(3)), "read-only")
}

func text(t *testing.T, db *sql.DB, query string) (s string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&s))
	return s
}

// holding opens a transaction that has read the table, like a report or a dump, and
// returns a function that ends it.
func holding(t *testing.T, db *sql.DB, table string) (end func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "SELECT FROM "+table)
	require.NoError(t, err)
	return func() { _ = tx.Rollback() }
}

// renaming is a set whose second file needs an exclusive lock of a table.
func renaming() fstest.MapFS {
	fsys := set(1)
	fsys["002_y.sql"] = migration("one", 2, 1, "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7")
	return fsys
}

// A transaction that comes after a migration which waits for a long reader waits behind
// it, but no longer than the migration waits.
func TestPostgresMigrationLetsOthersPass(t *testing.T) {
	migrate.HurryPostgres(t, 300*time.Millisecond, 1000)
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	end := holding(t, db, schema+".a")
	defer end()
	done := make(chan error, 1)
	waiting := openPostgres(t, "application_name", schema)
	go func() { done <- migrate.Postgres(ctx, waiting, schema, "one", renaming()) }()
	waits := "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'"
	for range 3 { // not only the first time
		require.Eventually(t, func() bool { return number(t, db, waits, schema) == 1 }, time.Minute, time.Millisecond)
		_, err := db.ExecContext(ctx, "INSERT INTO "+schema+".a VALUES (2)") // the reader stays
		require.NoError(t, err)
	}
	end()
	require.NoError(t, <-done)
	require.Equal(t, 4*7, number(t, db, "SELECT sum(y) FROM "+schema+".a"))
}

// If a reader never ends, the migration fails in the end and says so.
func TestPostgresMigrationGivesUp(t *testing.T) {
	migrate.HurryPostgres(t, 10*time.Millisecond, 3)
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	defer holding(t, db, schema+".a")()
	err := migrate.Postgres(ctx, db, schema, "one", renaming())
	require.ErrorContains(t, err, "migrate: one: 002_y.sql did not get its locks in 3 tries of 10ms, because transactions stay open that have used its tables (pg_stat_activity shows them)")
	require.Equal(t, dberr.Retry, dberr.Classify(err))
	require.NoError(t, db.PingContext(ctx))
	require.Equal(t, 1, number(t, db, "SELECT max(version) FROM "+schema+".surehook_migrations"))
}

// A caller that locks the tables in another order gets them, or an error that asks it
// to run again. The migration runs again by itself.
func TestPostgresMigrationInACircle(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(2)))
	fsys := set(2)
	fsys["003_y.sql"] = migration("one", 3, 2, "ALTER TABLE a ADD COLUMN y INTEGER; ALTER TABLE b ADD COLUMN y INTEGER")
	caller, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer caller.Rollback()
	_, err = caller.ExecContext(ctx, "INSERT INTO "+schema+".b VALUES (1)")
	require.NoError(t, err)
	done := make(chan error, 1)
	waiting := openPostgres(t, "application_name", schema)
	go func() { done <- migrate.Postgres(ctx, waiting, schema, "one", fsys) }()
	waits := "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'"
	require.Eventually(t, func() bool { return number(t, db, waits, schema) == 1 }, time.Minute, time.Millisecond)
	if _, err = caller.ExecContext(ctx, "INSERT INTO "+schema+".a VALUES (1)"); err != nil {
		require.Equal(t, dberr.Retry, dberr.Classify(err))
		require.NoError(t, caller.Rollback())
	} else {
		require.NoError(t, caller.Commit())
	}
	require.NoError(t, <-done)
}

// A role's own limits do not stop the building of an index.
func TestPostgresMigrationUnderARolesTimeouts(t *testing.T) {
	limits := []string{"statement_timeout", "transaction_timeout"}
	if number, err := strconv.Atoi(text(t, openPostgres(t), "SHOW server_version_num")); err != nil || number < 170000 {
		require.NoError(t, err)
		limits = limits[:1] // the second came with PostgreSQL 17
	}
	for _, limit := range limits {
		t.Run(limit, func(t *testing.T) {
			db, ctx := openPostgres(t, limit, "50"), t.Context()
			schema := pgtest.Schema(t, openPostgres(t))
			fsys := set(1)
			fsys["002_slow.sql"] = migration("one", 2, 1, "SELECT pg_sleep(0.2)")
			require.NoError(t, migrate.Postgres(ctx, db, schema, "one", fsys))
			require.Equal(t, "50ms", text(t, db, "SHOW "+limit))
		})
	}
}
