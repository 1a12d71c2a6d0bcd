package catchup_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/receiver/catchup/postgres"
	"github.com/surehook/surehook/receiver/catchup/sqlite"
)

func TestCursorStores(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		saysMigrate(t, sqlite.New(), receiver.SQL(db, nil))
		require.NoError(t, sqlite.Migrate(t.Context(), db))
		require.NoError(t, sqlite.Migrate(t.Context(), db), "again")
		keepsCursors(t, sqlite.New(), receiver.SQL(db, nil))
		require.ErrorIs(t, sqlite.New().SetCursor(t.Context(), nil, "a", "b"), catchup.ErrInvalid)
		keepsOutOfEnded(t, sqlite.New(), receiver.SQL(db, nil), execSQL)
	})
	t.Run("sqlite whose file is removed", refusesWithoutFile)
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	config := func(t *testing.T) *postgres.Config {
		cfg := &postgres.Config{Schema: pgtest.Schema(t, db)}
		require.NoError(t, postgres.MigratePool(t.Context(), pool, cfg))
		require.NoError(t, postgres.Migrate(t.Context(), db, cfg), "again")
		return cfg
	}
	t.Run("not migrated", func(t *testing.T) {
		store, err := postgres.NewSQL(&postgres.Config{Schema: pgtest.Schema(t, db)})
		require.NoError(t, err)
		saysMigrate(t, store, receiver.SQL(db, nil))
	})
	t.Run("pgx", func(t *testing.T) {
		store, err := postgres.New(config(t))
		require.NoError(t, err)
		inTx := func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
		keepsCursors(t, store, inTx)
		require.ErrorIs(t, store.SetCursor(t.Context(), nil, "a", "b"), catchup.ErrInvalid)
		keepsOutOfEnded(t, store, inTx, func(ctx context.Context, tx pgx.Tx, statement string) error {
			_, err := tx.Exec(ctx, statement)
			return err
		})
	})
	t.Run("postgres by database/sql", func(t *testing.T) {
		store, err := postgres.NewSQL(config(t))
		require.NoError(t, err)
		keepsCursors(t, store, receiver.SQL(db, nil))
		require.ErrorIs(t, store.SetCursor(t.Context(), nil, "a", "b"), catchup.ErrInvalid)
		keepsOutOfEnded(t, store, receiver.SQL(db, nil), execSQL)
	})
	t.Run("postgres by another driver", func(t *testing.T) {
		store, err := postgres.NewSQL(config(t))
		require.NoError(t, err)
		other := sql.OpenDB(pgtest.Opaque(stdlib.GetPoolConnector(pool)))
		t.Cleanup(func() { require.NoError(t, other.Close()) })
		keepsCursors(t, store, receiver.SQL(other, nil))
		keepsOutOfEnded(t, store, receiver.SQL(other, nil), execSQL)
	})
	_, err = postgres.New(&postgres.Config{Schema: strings.Repeat("x", 64)})
	require.ErrorIs(t, err, catchup.ErrInvalid)
}

// refusesWithoutFile has the store on SQLite set no cursor while its file is not where it was:
// what the cursor stands behind would be gone with the process.
func refusesWithoutFile(t *testing.T) {
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return
	}
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1) // a new connection would make a file
	require.NoError(t, sqlite.Migrate(t.Context(), db))
	store, inTx := sqlite.New(), receiver.SQL(db, nil)
	set := func() error {
		return inTx(t.Context(), func(tx *sql.Tx) error { return store.SetCursor(t.Context(), tx, "a", "b") })
	}
	require.NoError(t, set())
	require.NoError(t, os.Rename(path, path+".moved"))
	require.Eventually(t, func() bool { err := set(); return err != nil && strings.Contains(err.Error(), "was removed") }, time.Minute, time.Millisecond)
	require.NoError(t, os.Rename(path+".moved", path))
	require.Eventually(t, func() bool { return set() == nil }, time.Minute, time.Millisecond)
}

func execSQL(ctx context.Context, tx *sql.Tx, statement string) error {
	_, err := tx.ExecContext(ctx, statement)
	return err
}

// keepsOutOfEnded has a store refuse a transaction that a statement has ended: the effect is
// gone, or was committed before, so the cursor must not stand behind it.
func keepsOutOfEnded[Tx any](t *testing.T, store catchup.CursorStore[Tx], inTx receiver.InTx[Tx], exec func(ctx context.Context, tx Tx, statement string) error) {
	ctx := t.Context()
	for _, statement := range []string{"ROLLBACK", "COMMIT"} {
		require.ErrorIs(t, inTx(ctx, func(tx Tx) error {
			require.NoError(t, exec(ctx, tx, statement))
			return store.SetCursor(ctx, tx, "ended", "a")
		}), sql.ErrTxDone, statement)
		require.NoError(t, inTx(ctx, func(tx Tx) error {
			cursor, err := store.Cursor(ctx, tx, "ended")
			require.Empty(t, cursor, statement)
			return err
		}))
	}
}

// saysMigrate has a store without its table say what to do.
func saysMigrate[Tx any](t *testing.T, store catchup.CursorStore[Tx], inTx receiver.InTx[Tx]) {
	require.ErrorContains(t, inTx(t.Context(), func(tx Tx) error {
		_, err := store.Cursor(t.Context(), tx, "a")
		return err
	}), "call Migrate before")
	require.ErrorContains(t, inTx(t.Context(), func(tx Tx) error { return store.SetCursor(t.Context(), tx, "a", "b") }), "call Migrate before")
}

// keepsCursors tests the requirements for every store.
func keepsCursors[Tx any](t *testing.T, store catchup.CursorStore[Tx], inTx receiver.InTx[Tx]) {
	ctx := t.Context()
	get := func(name string) (cursor string) {
		require.NoError(t, inTx(ctx, func(tx Tx) (err error) {
			cursor, err = store.Cursor(ctx, tx, name)
			return err
		}))
		return cursor
	}
	set := func(name, cursor string, end error) error {
		return inTx(ctx, func(tx Tx) error {
			if err := store.SetCursor(ctx, tx, name, cursor); err != nil {
				return err
			}
			got, err := store.Cursor(ctx, tx, name)
			require.Equal(t, cursor, got, "in the transaction itself")
			return errors.Join(err, end)
		})
	}
	require.Empty(t, get("one"))
	require.ErrorIs(t, set("one", "a", errBroken), errBroken)
	require.Empty(t, get("one"), "a roll-back")
	require.NoError(t, set("one", "a", nil))
	require.NoError(t, set("two", "z", nil))
	require.NoError(t, set("one", "b", nil))
	require.ErrorIs(t, set("one", "c", errBroken), errBroken)
	require.Equal(t, "b", get("one"))
	require.Equal(t, "z", get("two"))
	long := strings.Repeat("é", 2048)
	require.NoError(t, set(strings.Repeat("n", 255), long, nil))
	require.Equal(t, long, get(strings.Repeat("n", 255)))
	for _, bad := range []struct{ name, cursor string }{
		{"", "a"}, {strings.Repeat("n", 256), "a"}, {"\x00", "a"}, {"\xff", "a"}, {"a", ""}, {"a", long + "x"}, {"a", "\x00"}, {"a", "\xff"},
	} {
		require.ErrorIs(t, set(bad.name, bad.cursor, nil), catchup.ErrInvalid)
	}
	require.ErrorIs(t, inTx(ctx, func(tx Tx) error {
		_, err := store.Cursor(ctx, tx, "")
		return err
	}), catchup.ErrInvalid)
}
