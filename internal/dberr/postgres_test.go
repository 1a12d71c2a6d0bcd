package dberr_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/pgtest"
)

// The driver itself, with a server's real errors. The second error of a lost connection
// counts too: an application may have swallowed the first.
func TestClassifyPostgresDriver(t *testing.T) {
	dsn, ctx := pgtest.DSN(t), t.Context()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	table := pgtest.Schema(t, db) + ".x"
	_, err = db.ExecContext(ctx, "CREATE TABLE "+table+" (a int PRIMARY KEY); INSERT INTO "+table+" VALUES (1), (2)")
	require.NoError(t, err)
	connect := func(settings ...string) *pgx.Conn {
		conn, err := pgx.Connect(ctx, pgtest.With(dsn, settings...))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	do := func(conn *pgx.Conn, query string) error {
		_, err := conn.Exec(ctx, query)
		return err
	}
	one, two := connect(), connect("default_transaction_isolation", "repeatable read", "lock_timeout", "1")

	require.NoError(t, do(two, "BEGIN; SELECT FROM "+table))
	require.NoError(t, do(one, "UPDATE "+table+" SET a = 3 WHERE a = 1"))
	err = do(two, "UPDATE "+table+" SET a = 4 WHERE a = 1")
	require.Equal(t, dberr.Retry, dberr.Classify(err), "old snapshot: %v", err)
	err = do(two, "SELECT 1")
	require.Equal(t, dberr.Other, dberr.Classify(err), "in a failed transaction: %v", err)
	require.NoError(t, do(two, "ROLLBACK"))

	require.NoError(t, do(one, "BEGIN; UPDATE "+table+" SET a = 5 WHERE a = 3"))
	err = do(two, "UPDATE "+table+" SET a = 5 WHERE a = 3")
	require.Equal(t, dberr.Retry, dberr.Classify(err), "lock held: %v", err)
	require.NoError(t, do(two, "SET lock_timeout = 0; SET deadlock_timeout = 1; BEGIN; UPDATE "+table+" SET a = 6 WHERE a = 2"))
	crossed := make(chan error, 1)
	go func() { crossed <- do(one, "UPDATE "+table+" SET a = 7 WHERE a = 2") }()
	err = do(two, "UPDATE "+table+" SET a = 8 WHERE a = 3")
	if other := <-crossed; err == nil { // the other was chosen
		err = other
	}
	require.Equal(t, dberr.Retry, dberr.Classify(err), "deadlock: %v", err)

	err = do(connect("default_transaction_read_only", "on"), "DELETE FROM "+table)
	require.Equal(t, dberr.Unavailable, dberr.Classify(err), "read only: %v", err)

	for what, settings := range map[string][]string{
		"terminated":                nil,
		"idle for too long":         {"idle_in_transaction_session_timeout", "1"},
		"session idle for too long": {"idle_session_timeout", "1"},
	} {
		conn := connect(settings...)
		if settings == nil || settings[0] != "idle_session_timeout" {
			require.NoError(t, do(conn, "BEGIN"))
		}
		if settings == nil {
			_, err = db.ExecContext(ctx, "SELECT pg_terminate_backend($1)", conn.PgConn().PID())
			require.NoError(t, err)
		}
		gone := "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, db.QueryRowContext(ctx, gone, conn.PgConn().PID()).Scan(&n))
			return n == 0
		}, time.Minute, time.Millisecond)
		for _, nth := range []string{"first", "second"} {
			err = do(conn, "SELECT 1")
			require.Equal(t, dberr.Unavailable, dberr.Classify(err), "%s, %s error: %v", what, nth, err)
			require.Equal(t, dberr.Unavailable, dberr.Stated(err), "%s, %s error, by itself: %v", what, nth, err)
		}
	}
	_, err = pgx.Connect(ctx, pgtest.With(dsn, "host", t.TempDir()))
	require.Equal(t, dberr.Unavailable, dberr.Classify(err), "no server: %v", err)
	err = do(one, "SELECT * FROM absent")
	require.Error(t, err)
	require.Equal(t, dberr.Other, dberr.Classify(err))
}
