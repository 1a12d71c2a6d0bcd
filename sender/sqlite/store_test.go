package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

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

// clock is one that tests move.
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

func TestStore(t *testing.T) {
	// The race detector makes SQLite many times slower. What it can find does not
	// depend on how transactions begin, so it is given one way; without it all run.
	modes := []string{"immediate"}
	if !raceEnabled {
		modes = append(modes, "deferred", "one connection")
	}
	for _, c := range []struct {
		name   string
		params string
		conns  int
	}{
		{"deferred", fit, 0},
		{"immediate", fit + "&_txlock=immediate", 0},
		{"one connection", fit, 1},
	} {
		if !slices.Contains(modes, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Harness[*sql.Tx] {
				db := open(t, path(t), c.params)
				db.SetMaxOpenConns(c.conns)
				clock := newClock()
				return storetest.Harness[*sql.Tx]{
					Store:   newStore(t, db, clock.now),
					Advance: clock.advance,
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
