package drivers

import (
	"database/sql"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/deduptest"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// Main runs a package's tests.
func Main(m *testing.M) {
	pgtest.TempInMemory()
	overlap.Tests(4)
	os.Exit(m.Run())
}

// Run runs all suites on files that are opened by a driver, with settings in its own words.
func Run(t *testing.T, driver, settings string) {
	open := func(t *testing.T, path string) *sql.DB {
		db, err := sql.Open(driver, "file:"+path+"?"+settings)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	t.Run("sender", func(t *testing.T) {
		t.Parallel()
		suite := storetest.RunCallers[*sql.Tx]
		if os.Getenv("SUREHOOK_EVERY") == "1" {
			suite = storetest.Run[*sql.Tx]
		}
		suite(t, func(t *testing.T) storetest.Harness[*sql.Tx] { return senders(t, open) })
	})
	t.Run("dedup", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a.db")
		var harness func(t *testing.T) deduptest.Harness[*sql.Tx]
		harness = func(t *testing.T) deduptest.Harness[*sql.Tx] {
			db := open(t, path)
			require.NoError(t, dedup.Migrate(t.Context(), db))
			return deduptest.Harness[*sql.Tx]{Store: dedup.New(), InTx: dedup.InTx(db), Reopen: harness}
		}
		deduptest.Run(t, harness)
	})
}

func senders(t *testing.T, open func(t *testing.T, path string) *sql.DB) storetest.Harness[*sql.Tx] {
	path, at := filepath.Join(t.TempDir(), "a.db"), new(atomic.Int64)
	at.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
	store := func(t *testing.T) (*sqlite.Store, *sql.DB) {
		db := open(t, path)
		s, err := sqlite.New(db, &sqlite.Config{Now: func() time.Time { return time.UnixMicro(at.Load()) }})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		return s, db
	}
	s, db := store(t)
	return storetest.Harness[*sql.Tx]{
		Store:       s,
		Advance:     func(by time.Duration) { at.Add(by.Microseconds()) },
		BoundedWork: true,
		SettingsOf: func(t *testing.T, id string) sender.Settings {
			var stored []byte
			require.NoError(t, db.QueryRowContext(t.Context(), `SELECT settings FROM surehook_subscriptions WHERE id = ?`, id).Scan(&stored))
			return sender.ReadSettings(stored)
		},
		Other: func(t *testing.T) storetest.Store[*sql.Tx] {
			other, _ := store(t)
			return other
		},
		Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			return tx, tx.Commit, tx.Rollback
		},
	}
}
