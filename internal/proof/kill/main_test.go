package kill_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

func TestMain(m *testing.M) {
	killtest.Serve(
		dedupOnSQLite, dedupOnPostgres, receiving, takingOnSQLite, takingOnPostgres, catchingUp, repairingOnSQLite, repairingOnPostgres,
		stepping, replayingOnSQLite, replayingOnPostgres, working, producingOnSQLite, producingOnPostgres, orderingOnSQLite, orderingOnPostgres,
	)
	overlap.Tests(4)
	os.Exit(m.Run())
}

// killsOr returns how often the service's processes are killed: what SUREHOOK_KILLS says,
// or a default.
func killsOr(t *testing.T, number int) int {
	t.Helper()
	if text := os.Getenv("SUREHOOK_KILLS"); text != "" {
		_, err := fmt.Sscan(text, &number)
		require.NoError(t, err, "SUREHOOK_KILLS")
	}
	return number
}

// child stands for a test in a process that has no test: it fails as a test does.
type child struct{ testing.TB }

func (child) Helper() {}

func (child) Cleanup(func()) {} // it is killed

func (child) Context() context.Context { return context.Background() }

func (child) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (child) FailNow() { os.Exit(2) }

func (c child) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	c.FailNow()
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// openSQLite opens a file as services must, until the test ends. Transactions that the
// application begins take the write lock at once.
func openSQLite(t testing.TB, path string) *sql.DB {
	return openDriver(t, "sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)")
}

// openDeferred opens a file without saying when transactions take the write lock.
func openDeferred(t testing.TB, path string) *sql.DB {
	return openDriver(t, "sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
}

func openDriver(t testing.TB, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// schema is a test's own schema on a server, in the form in which processes learn of it.
type schema struct{ URL, Name string }

// testSchema makes a schema for as long as the test lasts.
func testSchema(t *testing.T) (schema, *sql.DB) {
	dsn := pgtest.DSN(t)
	name := pgtest.Schema(t, openDriver(t, "pgx", dsn))
	url := pgtest.With(dsn, "search_path", name)
	return schema{pgtest.With(url, "pool_max_conns", "12"), name}, openDriver(t, "pgx", url)
}

// openPool opens a pool until the test ends.
func openPool(t testing.TB, s schema, settings ...string) *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), pgtest.With(s.URL, settings...))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func testKeys(t testing.TB) *sender.Keys {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	return keys
}

func newReceiver[Tx any](t testing.TB, inTx receiver.InTx[Tx], store dedup.Store[Tx], secret signing.Secret) *receiver.Receiver[Tx] {
	return newReceiverWith(t, inTx, store, secret, receiver.Config{})
}

// newReceiverWith is newReceiver with a configuration, whose Logger it sets.
func newReceiverWith[Tx any](t testing.TB, inTx receiver.InTx[Tx], store dedup.Store[Tx], secret signing.Secret, cfg receiver.Config) *receiver.Receiver[Tx] {
	keys, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	cfg.Logger = quiet
	rcv, err := receiver.New(verifier, inTx, store, "default", &cfg)
	require.NoError(t, err)
	return rcv
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func column(t *testing.T, db querier, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err, query)
	defer rows.Close()
	values := []string{}
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

// intact checks that a kill has not damaged an SQLite file.
func intact(t *testing.T, db *sql.DB) {
	t.Helper()
	require.Equal(t, []string{"ok"}, column(t, db, "PRAGMA integrity_check"))
}
