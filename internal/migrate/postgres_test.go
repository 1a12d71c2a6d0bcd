package migrate_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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
	before := time.Now()
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(2)))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(4)))
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(4)))
	require.Equal(t, 12, number(t, db, "SELECT x FROM "+schema+".a"))
	require.Equal(t, 4, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations WHERE set_name = 'one'"))
	var at time.Time
	require.NoError(t, db.QueryRowContext(ctx, "SELECT min(applied_at) FROM "+schema+".surehook_migrations").Scan(&at))
	require.WithinRange(t, at, before.Add(-time.Second), time.Now().Add(time.Second))

	other := fstest.MapFS{"001_c.sql": {Data: []byte("CREATE TABLE c (x INTEGER)")}}
	require.NoError(t, migrate.Postgres(ctx, db, schema, "two", other), "sets are numbered apart")
	require.Equal(t, 1, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations WHERE set_name = 'two'"))
	require.ErrorContains(t, migrate.Postgres(ctx, db, schema, "one", set(3)),
		"migrate: one: the database is at version 4 and this release knows 3: run the newer release")
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

func TestPostgresFailureLeavesNothing(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(1)))
	fsys := set(2)
	fsys["003_bad.sql"] = &fstest.MapFile{Data: []byte("UPDATE a SET x = 99; INSERT INTO absent VALUES (1);")}
	err := migrate.Postgres(ctx, db, schema, "one", fsys)
	require.ErrorContains(t, err, "migrate: one: 003_bad.sql: ")
	require.ErrorContains(t, err, "absent")
	require.Equal(t, 1, number(t, db, "SELECT x FROM "+schema+".a"))
	require.Equal(t, 1, number(t, db, "SELECT max(version) FROM "+schema+".surehook_migrations"), "002_b.sql neither")
	require.NoError(t, migrate.Postgres(ctx, db, schema, "one", set(3)))
}

// Both sets need the schema and the ledger, and a server's default level of
// isolation must not make those who wait see an old state.
func TestPostgresManyStartAtOnce(t *testing.T) {
	db, ctx := openPostgres(t), t.Context()
	schema := pgtest.Schema(t, db)
	_, err := db.ExecContext(ctx, "DROP SCHEMA "+schema)
	require.NoError(t, err)
	other := fstest.MapFS{"001_c.sql": {Data: []byte("CREATE TABLE c (x INTEGER)")}}
	start := make(chan struct{})
	var g errgroup.Group
	for i := range 8 {
		db := openPostgres(t, "default_transaction_isolation", []string{"read committed", "serializable"}[i/2%2])
		require.NoError(t, db.PingContext(ctx))
		g.Go(func() error {
			<-start
			if i%2 == 0 {
				return migrate.Postgres(ctx, db, schema, "two", other)
			}
			return migrate.Postgres(ctx, db, schema, "one", set(4))
		})
	}
	close(start)
	require.NoError(t, g.Wait())
	require.Equal(t, 12, number(t, db, "SELECT x FROM "+schema+".a"), "each file once")
	require.Equal(t, 5, number(t, db, "SELECT count(*) FROM "+schema+".surehook_migrations"))
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

	// Those who are up to date wait for nothing, though they read the ledger.
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

// A role that may do nothing but read can start with what is up to date.
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
