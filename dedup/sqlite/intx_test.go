package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/proof/faultdriver"
)

// Transactions begin in the order of the calls. One whose context ends while it waits keeps
// no one else waiting, and neither does a function that panics.
func TestInTxTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inTx := sqlite.InTx(open(t, filepath.Join(t.TempDir(), "a.db"), immediate))
		release := make(chan struct{})
		go func() {
			defer func() { _ = recover() }()
			_ = inTx(t.Context(), func(*sql.Tx) error {
				<-release
				panic("by the function")
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var order []int
		for i := range 8 {
			ctx := ctx
			if i != 3 {
				ctx = t.Context()
			}
			go func() {
				err := inTx(ctx, func(*sql.Tx) error {
					order = append(order, i)
					return nil
				})
				if i == 3 && !errors.Is(err, context.Canceled) || i != 3 && err != nil {
					t.Error(i, err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(release)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 4, 5, 6, 7}, order)
	})
}

// A call that waits for its own end gets an error and does not hang for ever. The outer
// transaction is committed all the same.
func TestInTxInsideItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, filepath.Join(t.TempDir(), "a.db"), immediate)
		inTx := sqlite.InTx(db)
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			err := inTx(t.Context(), func(*sql.Tx) error { return nil })
			require.ErrorIs(t, err, dedup.ErrRetryTx)
			_, err = tx.Exec("CREATE TABLE made (x)")
			return err
		}))
		_, err := db.Exec("SELECT * FROM made")
		require.NoError(t, err)
	})
	require.Nil(t, sqlite.InTx(nil))
}

// InTx returns the errors of its begin and of its commit: otherwise an event would count as
// applied that was not committed.
func TestInTxFails(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), immediate)
	inTx := sqlite.InTx(db)
	require.ErrorIs(t, inTx(t.Context(), func(tx *sql.Tx) error { return tx.Rollback() }), sql.ErrTxDone)
	require.NoError(t, db.Close())
	require.ErrorContains(t, inTx(t.Context(), func(*sql.Tx) error { return nil }), "closed")
}

// A commit that fails leaves no transaction in the pool, which would keep everybody from
// writing.
func TestInTxAfterACommitThatFailed(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), immediate+"&_pragma=foreign_keys(1)")
	_, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE items (item INTEGER REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, err)
	inTx := sqlite.InTx(db)
	run := func(statement string) error {
		return inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(statement)
			return err
		})
	}
	require.ErrorContains(t, run("INSERT INTO items VALUES (1)"), "FOREIGN KEY")
	require.NoError(t, run("INSERT INTO orders VALUES (2)"))
	var items int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM items").Scan(&items))
	require.Zero(t, items)
}

// If the context ends before the commit, the rollback is left to database/sql, which may close the
// connection at that moment.
func TestInTxWhoseContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	connector, err := faultdriver.Open(open(t, path, immediate).Driver(), "file:"+path+"?"+immediate)
	require.NoError(t, err)
	var rollbacks atomic.Int64
	db := sql.OpenDB(faultdriver.Wrap(connector, func(_ context.Context, c faultdriver.Call, do func() error) error {
		if c.Kind == faultdriver.Exec && c.Text == "ROLLBACK" {
			rollbacks.Add(1)
		}
		return do()
	}))
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithCancel(t.Context())
	inTx := sqlite.InTx(db)
	require.Error(t, inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TABLE left_behind (n INTEGER)")
		cancel()
		return err
	}))
	require.Zero(t, rollbacks.Load())
	require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TABLE left_behind (n INTEGER)")
		return err
	}))
}

// InTx commits nothing into a file that was removed or replaced: it would be gone with the process.
func TestInTxWithoutItsFile(t *testing.T) {
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return
	}
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path, immediate)
	db.SetMaxOpenConns(1) // a new connection would make a file
	_, err := db.Exec("CREATE TABLE effects (n INTEGER)")
	require.NoError(t, err)
	inTx := sqlite.InTx(db)
	becomes := func(says string) {
		t.Helper()
		require.Eventually(t, func() bool {
			err := inTx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.Exec("INSERT INTO effects VALUES (1)")
				return err
			})
			if says == "" {
				return err == nil
			}
			return err != nil && strings.Contains(err.Error(), says)
		}, time.Minute, time.Millisecond, "%q", says)
	}
	becomes("")
	require.NoError(t, os.Rename(path, path+".moved"))
	becomes("was removed")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	becomes("was replaced")
	require.NoError(t, os.Rename(path+".moved", path))
	becomes("")
}
