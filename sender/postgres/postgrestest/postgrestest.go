// Package postgrestest gives tests a PostgreSQL server: tests of a service that uses
// sender/postgres, dedup/postgres or another store of this module on PostgreSQL.
//
//	func TestPublish(t *testing.T) {
//		pool := postgrestest.Pool(t)
//		store, err := postgres.New(pool, nil)
//		…
//	}
//
// The server is that of the environment variable SUREHOOK_TEST_POSTGRES, a URL, if it is
// set. Else one is started from installed binaries (those of initdb in PATH, else the
// newest in /usr/lib/postgresql, where Debian puts them), once in a process. It ends with
// the process, also if that is killed, and keeps nothing. Without binaries the test is
// skipped, and says why; it fails instead if the environment variable SUREHOOK_REQUIRE, a
// list with commas, names postgres.
package postgrestest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook/internal/pgtest"
)

// DSN returns the server's connection string, a URL. All tests of the process share the
// server, and its databases.
func DSN(t testing.TB) string {
	t.Helper()
	return pgtest.DSN(t)
}

// Pool connects to the server, with an empty schema of the test's own as the search_path.
// When the test ends, the schema is dropped with all that is in it, and the pool closed: all
// that the test has begun must have ended by then.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	dsn := pgtest.DSN(t)
	admin, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatalf("postgrestest: connecting: %v", err)
	}
	t.Cleanup(admin.Close)
	db := stdlib.OpenDBFromPool(admin)
	t.Cleanup(func() { _ = db.Close() })
	schema := pgtest.Schema(t, db)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pool, err := pgxpool.New(ctx, pgtest.With(dsn, "search_path", schema))
	if err != nil {
		t.Fatalf("postgrestest: connecting: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}
