package fault_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	modernc "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/faultdriver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// side is a process's sender or receiver: its database, for transactions of the
// application, and its store.
type side struct {
	db    *sql.DB
	store storetest.Store[*sql.Tx]
	dedup dedup.Store[*sql.Tx]
}

func (s side) replays(t *testing.T) *replay.Replays {
	t.Helper()
	r, err := replay.New(s.store, nil)
	require.NoError(t, err)
	return r
}

// bed is a migrated database, in which one flow after the other is run.
type bed interface {
	// flow runs a whole flow while a call fails.
	flow(t *testing.T, f *fault)
}

var beds = map[string]func(t *testing.T) bed{"sqlite": newSQLite, "postgres": newPostgres}

// workers is how many flows run at once. If time passes by itself, flows mostly wait.
func workers(bed string) int {
	if bed == "postgres" {
		return 4
	}
	return 1
}

func keys(t *testing.T) *sender.Keys {
	t.Helper()
	k, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	return k
}

const (
	things  = "CREATE TABLE things (id text NOT NULL)"
	effects = "CREATE TABLE effects (event text NOT NULL, object text NOT NULL)"
)

// onSQLite copies two files for each flow, and has a clock that the test moves.
type onSQLite struct{ template string }

func openSQLite(t testing.TB, path string, f *fault) *sql.DB {
	t.Helper()
	connector, err := faultdriver.Open(&modernc.Driver{}, "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	if f != nil {
		connector = faultdriver.Wrap(connector, f.around)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func newSQLite(t *testing.T) bed {
	b := onSQLite{t.TempDir()}
	db := openSQLite(t, filepath.Join(b.template, "a.db"), nil)
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, dedupsqlite.Migrate(t.Context(), db))
	for _, query := range []string{things, effects, "PRAGMA wal_checkpoint(TRUNCATE)"} {
		_, err = db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
	return b
}

func (b onSQLite) flow(t *testing.T, f *fault) {
	clock := time.Now()
	text, err := os.ReadFile(filepath.Join(b.template, "a.db"))
	require.NoError(t, err)
	folder := t.TempDir()
	open := func(name string, f *fault) side {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			require.NoError(t, os.WriteFile(path, text, 0o600))
		}
		db := openSQLite(t, path, f)
		s, err := sqlite.New(db, &sqlite.Config{Now: func() time.Time { return clock }})
		require.NoError(t, err)
		return side{db, s, dedupsqlite.New()}
	}
	run(t, flow{
		fault: f, faulty: open("sender.db", f), sound: open("sender.db", nil), receiver: open("receiver.db", f), applied: open("receiver.db", nil),
		pass:    func(d time.Duration) { clock = clock.Add(d) },
		timeout: time.Second,
	})
}

// onPostgres has one schema for all flows, and the server's clock.
type onPostgres struct {
	dsn   string
	sound side
}

func newPostgres(t *testing.T) bed {
	dsn := pgtest.DSN(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	schema := newid.New("fault_", time.Now())
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(t, err)
		require.NoError(t, conn.Close(context.Background()))
	})
	b := onPostgres{dsn: pgtest.With(dsn, "search_path", schema, "pool_max_conns", "8")}
	var s *postgres.Store[*sql.Tx]
	b.sound, s = b.open(t, nil)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, deduppostgres.Migrate(t.Context(), b.sound.db, nil))
	for _, query := range []string{things, effects} {
		_, err := b.sound.db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
	return b
}

// open opens the application's transactions with a driver whose calls fail, and the
// dispatcher's on connections that fail.
func (b onPostgres) open(t *testing.T, f *fault) (side, *postgres.Store[*sql.Tx]) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.dsn)
	require.NoError(t, err)
	plain, err := pgx.ParseConfig(b.dsn)
	delete(plain.RuntimeParams, "pool_max_conns")
	require.NoError(t, err)
	connector := stdlib.GetConnector(*plain)
	if f != nil {
		cfg.ConnConfig.DialFunc = f.dial(cfg.ConnConfig.DialFunc)
		connector = faultdriver.Wrap(connector, f.around)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		// A connection whose statement was broken off is closed in the
		// background.
		require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, time.Minute, time.Millisecond, "connections that were not given back")
		pool.Close()
	})
	s, err := postgres.NewSQL(pool, nil)
	require.NoError(t, err)
	d, err := deduppostgres.NewSQL(nil)
	require.NoError(t, err)
	return side{db, s, d}, s
}

func (b onPostgres) flow(t *testing.T, f *fault) {
	faulty, _ := b.open(t, f)
	run(t, flow{
		fault: f, faulty: faulty, sound: b.sound, receiver: faulty, applied: b.sound,
		pass:    time.Sleep,
		timeout: 60 * time.Millisecond, realTime: true,
	})
}
