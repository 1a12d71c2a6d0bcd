package dberr_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/dberr"
)

type pgError string

func (e pgError) Error() string    { return "ERROR (SQLSTATE " + string(e) + ")" }
func (e pgError) SQLState() string { return string(e) }

type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

type httpError int

func (e httpError) Error() string { return fmt.Sprintf("status %d", int(e)) }
func (e httpError) Code() int     { return int(e) }

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		want dberr.Kind
	}{
		{nil, dberr.Other},
		{errors.New("no such table: x"), dberr.Other},
		{context.Canceled, dberr.Other},
		{context.DeadlineExceeded, dberr.Other},
		{sql.ErrNoRows, dberr.Other},
		{sql.ErrTxDone, dberr.Other},

		{pgError("40001"), dberr.Retry},
		{pgError("40P01"), dberr.Retry},
		{pgError("55P03"), dberr.Retry},
		{pgError("40002"), dberr.Other},
		{pgError("23505"), dberr.Other},
		{pgError("57014"), dberr.Other},
		{pgError(""), dberr.Other},
		{pgError("08006"), dberr.Unavailable},
		{pgError("53300"), dberr.Unavailable},
		{pgError("57P01"), dberr.Unavailable},
		{pgError("57P02"), dberr.Unavailable},
		{pgError("57P03"), dberr.Unavailable},
		{pgError("57P05"), dberr.Unavailable},
		{pgError("25P03"), dberr.Unavailable},
		{pgError("25P04"), dberr.Unavailable},
		{pgError("25006"), dberr.Unavailable},
		{pgError("58030"), dberr.Unavailable},
		{pgError("25P02"), dberr.Other},
		{pgError("25001"), dberr.Other},

		{sqliteError(5), dberr.Retry},
		{sqliteError(5 | 1<<8), dberr.Retry}, // SQLITE_BUSY_RECOVERY
		{sqliteError(5 | 2<<8), dberr.Retry}, // SQLITE_BUSY_SNAPSHOT
		{sqliteError(6 | 1<<8), dberr.Retry}, // SQLITE_LOCKED_SHAREDCACHE
		{sqliteError(10 | 4<<8), dberr.Unavailable},
		{sqliteError(13), dberr.Unavailable},
		{sqliteError(14), dberr.Unavailable},
		{sqliteError(19 | 6<<8), dberr.Other}, // SQLITE_CONSTRAINT_PRIMARYKEY
		{httpError(517), dberr.Other},
		{httpError(522), dberr.Other},

		{errors.New("sqlite3: database is locked"), dberr.Retry},
		{errors.New("database table is locked: x"), dberr.Retry},

		{driver.ErrBadConn, dberr.Unavailable},
		{sql.ErrConnDone, dberr.Unavailable},
		{io.ErrUnexpectedEOF, dberr.Unavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, dberr.Unavailable},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, dberr.Unavailable},
		{&net.OpError{Op: "read", Err: errors.New("database is locked")}, dberr.Unavailable},
	} {
		require.Equal(t, c.want, dberr.Classify(c.err), "%v", c.err)
		if c.err != nil {
			wrapped := errors.Join(errors.New("apply failed"), fmt.Errorf("marking: %w", c.err))
			require.Equal(t, c.want, dberr.Classify(wrapped), "wrapped: %v", c.err)
		}
	}
}

// The driver itself: a lock held by another connection, and a snapshot that is
// too old to be written to.
func TestClassifySQLiteDriver(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db")+"?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	defer db.Close()
	ctx := t.Context()
	_, err = db.ExecContext(ctx, "CREATE TABLE x (a INTEGER)")
	require.NoError(t, err)

	one, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer one.Rollback()
	two, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer two.Rollback()

	var n int
	require.NoError(t, two.QueryRowContext(ctx, "SELECT count(*) FROM x").Scan(&n))
	_, err = one.ExecContext(ctx, "INSERT INTO x VALUES (1)")
	require.NoError(t, err)
	_, err = two.ExecContext(ctx, "INSERT INTO x VALUES (2)")
	require.Equal(t, dberr.Retry, dberr.Classify(err), "lock held: %v", err)
	require.NoError(t, one.Commit())
	_, err = two.ExecContext(ctx, "INSERT INTO x VALUES (2)")
	require.Equal(t, dberr.Retry, dberr.Classify(err), "old snapshot: %v", err)

	absent, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "no", "such", "folder.db"))
	require.NoError(t, err)
	defer absent.Close()
	err = absent.PingContext(ctx)
	require.Equal(t, dberr.Unavailable, dberr.Classify(err), "cannot open: %v", err)

	_, err = db.ExecContext(ctx, "SELECT * FROM absent")
	require.Error(t, err)
	require.Equal(t, dberr.Other, dberr.Classify(err))
}
