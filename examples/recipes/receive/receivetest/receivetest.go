// Package receivetest holds every recipe for receiving to the same promise: the marker and
// the change commit together, or neither does.
package receivetest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
	"github.com/surehook/surehook/signing"
)

// Pool leads to a database with the library's tables, and one of payments.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := postgrestest.Pool(t)
	require.NoError(t, postgres.MigratePool(t.Context(), pool, nil))
	_, err := pool.Exec(t.Context(), "CREATE TABLE payments (event text NOT NULL)")
	require.NoError(t, err)
	return pool
}

// DB is Pool for database/sql.
func DB(t *testing.T) *sql.DB {
	t.Helper()
	db := stdlib.OpenDBFromPool(Pool(t))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// lost is the error of a transaction that lost against another one.
const lost = "DO $$ BEGIN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END $$"

// Check posts events to a receiver whose secret is given. exec runs a statement, with one $1
// or ? for an argument as the library has it, in a transaction of the receiver.
func Check[Tx any](t *testing.T, db *sql.DB, rcv *receiver.Receiver[Tx], secret signing.Secret, exec func(tx Tx, query string, args ...any) error) {
	t.Helper()
	var after []error // what follows the change, at each run
	handler := rcv.Handler(receiver.Fact(func(_ context.Context, tx Tx, ev receiver.Event) error {
		if err := exec(tx, "INSERT INTO payments VALUES (?)", ev.ID); err != nil {
			return err
		}
		if len(after) == 0 {
			return nil
		}
		err := after[0]
		after = after[1:]
		if errors.Is(err, errLost) {
			return exec(tx, lost)
		}
		return err
	}))
	snd := receivertest.NewSender(t, secret, nil)
	ev := receivertest.NewEvent("invoice", "in_1", 1)
	rows := func(query string) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n))
		return n
	}
	paid := func(n int) {
		t.Helper()
		require.Equal(t, n, rows("SELECT count(*) FROM payments"))
	}

	after = []error{errors.New("the change fails")}
	require.Equal(t, 500, snd.Request(ev).Serve(handler).Status)
	paid(0)
	require.Zero(t, rows("SELECT count(*) FROM surehook_dedup_markers"))

	after = []error{errLost, errLost}
	require.Equal(t, receiver.Applied, snd.Request(ev).Serve(handler).Result, "it is run again at once")
	require.Empty(t, after)
	paid(1)
	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(handler).Result)
	paid(1)

	after = []error{receiver.Permanent(errors.New("it can never be applied"))}
	require.Equal(t, receiver.DeadLettered, snd.Request(receivertest.NewEvent("invoice", "in_2", 1)).Serve(handler).Result)
	paid(1)
	require.Equal(t, 1, rows("SELECT count(*) FROM surehook_dedup_dead_letters"))
}

// errLost stands for the statement that fails so.
var errLost = errors.New("lost")
