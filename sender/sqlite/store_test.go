package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

const fit = "_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"

func path(t testing.TB) string { return filepath.Join(t.TempDir(), "a.db") }

func open(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// clock is a clock that tests move.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// newStore returns a store with its tables.
func newStore(t testing.TB, db *sql.DB, now func() time.Time) *sqlite.Store {
	t.Helper()
	s, err := sqlite.New(db, &sqlite.Config{Now: now})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(context.Background()))
	return s
}

// newPath returns the path of a new database with the tables.
func newPath(t *testing.T, migrated []byte) string {
	t.Helper()
	p := path(t)
	require.NoError(t, os.WriteFile(p, migrated, 0o600))
	return p
}

// newer adds a column to each table, as a later release's migration may while releases
// that know n migrations go on working.
func newer(t *testing.T, db *sql.DB, needs int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT format('ALTER TABLE %s ADD COLUMN of_a_later_release INTEGER NOT NULL DEFAULT 1', name)
		FROM sqlite_master WHERE type = 'table' AND name LIKE 'surehook_%' AND name <> 'surehook_migrations'`)
	require.NoError(t, err)
	defer rows.Close()
	var alter []string
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		alter = append(alter, text)
	}
	require.NoError(t, rows.Err())
	for _, text := range append(alter, fmt.Sprintf(`INSERT INTO surehook_migrations (set_name, version, needs)
		SELECT set_name, max(version) + 1, %d FROM surehook_migrations GROUP BY 1`, needs)) {
		_, err := db.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
}

// migrated is the file of a database with empty tables: to copy it is faster than to
// make the tables.
func migrated(t *testing.T) []byte {
	t.Helper()
	p := path(t)
	db, err := sql.Open("sqlite", "file:"+p+"?"+fit)
	require.NoError(t, err)
	newStore(t, db, time.Now)
	newer(t, db, 1)
	require.NoError(t, db.Close(), "which leaves one file")
	text, err := os.ReadFile(p)
	require.NoError(t, err)
	return text
}

// An application's database may be in UTF-16, which has another order of characters.
func TestDatabaseInUTF16(t *testing.T) {
	t.Parallel()
	s := newStore(t, open(t, path(t), "_pragma=encoding('UTF-16')&"+fit), time.Now)
	ids := []string{"K1", "é", "ключ", "～", "🔑"} // the last two are the other way round in UTF-16
	for _, id := range ids {
		require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
			secret := sender.SealedSecret{ID: "sec_1", Sealed: []byte(id), Key: id}
			return s.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_" + hex.EncodeToString([]byte(id)), CreatedAt: time.Now()}, []sender.SealedSecret{secret})
		}))
	}
	keys, err := s.SealingKeys(t.Context())
	require.NoError(t, err)
	require.Equal(t, ids, keys)
}

// callersAndRandom is the suite's part about callers' transactions, with the random
// histories, which call the rest.
func callersAndRandom(t *testing.T, open func(t *testing.T) storetest.Harness[*sql.Tx]) {
	storetest.RunCallers(t, open)
	storetest.RunRandom(t, open)
}

func TestStore(t *testing.T) {
	t.Parallel()
	empty := migrated(t)
	for _, c := range []struct {
		name   string
		params string
		conns  int
		suite  func(t *testing.T, open func(t *testing.T) storetest.Harness[*sql.Tx])
	}{
		// The race detector gets one way to begin, and what several goroutines do at once. All
		// is run without it.
		{"deferred", fit, 0, storetest.RunCallers[*sql.Tx]},
		{"immediate", fit + "&_txlock=immediate", 0, storetest.Run[*sql.Tx]},
		// A method that asks for a second connection waits for ever, whatever else it does.
		{"one connection", fit, 1, callersAndRandom},
	} {
		if race.Enabled && c.name != "deferred" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case os.Getenv("SUREHOOK_EVERY") == "1":
				c.suite = storetest.Run[*sql.Tx]
			case race.Enabled:
				c.suite = storetest.RunConcurrent[*sql.Tx]
			}
			c.suite(t, func(t *testing.T) storetest.Harness[*sql.Tx] {
				file := newPath(t, empty)
				db := open(t, file, c.params)
				db.SetMaxOpenConns(c.conns)
				clock := newClock()
				s, err := sqlite.New(db, &sqlite.Config{Now: clock.now})
				require.NoError(t, err)
				return storetest.Harness[*sql.Tx]{
					Store:       lined{s, t, db},
					Advance:     clock.advance,
					BoundedWork: true,
					Settled:     func(t *testing.T) { settled(t, db) },
					Consistent:  func(t *testing.T) { consistent(t, db, clock.now()) },
					SettingsOf: func(t *testing.T, id string) sender.Settings {
						var stored []byte
						require.NoError(t, db.QueryRowContext(t.Context(), `SELECT settings FROM surehook_subscriptions WHERE id = ?`, id).Scan(&stored))
						return sender.ReadSettings(stored)
					},
					Other: func(t *testing.T) storetest.Store[*sql.Tx] {
						own := open(t, file, c.params)
						own.SetMaxOpenConns(c.conns)
						other, err := sqlite.New(own, &sqlite.Config{Now: clock.now})
						require.NoError(t, err)
						return other
					},
					Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
						tx, err := db.BeginTx(t.Context(), nil)
						require.NoError(t, err)
						return tx, tx.Commit, tx.Rollback
					},
				}
			})
		})
	}
}
