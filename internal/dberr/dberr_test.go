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

// message is the error of bun's driver, which has no method SQLState.
type message string

func (e message) Error() string            { return "ERROR #" + string(e) }
func (e message) IntegrityViolation() bool { return false }
func (e message) Field(key byte) string {
	if key == 'C' {
		return string(e)
	}
	return "23505"
}

type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("code %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

// sqliteText is the error of an SQLite driver that has only a text.
type sqliteText string

func (e sqliteText) Error() string { return string(e) }
func (e sqliteText) Code() uint8   { return 5 }

// unsent is pgx's error for a connection that was not used.
type unsent string

func (e unsent) Error() string     { return string(e) }
func (e unsent) SafeToRetry() bool { return true }

// mysqlError is as the errors of both drivers.
type mysqlError string

func (e mysqlError) Error() string { return string(e) }

type httpError int

func (e httpError) Error() string { return fmt.Sprintf("status %d", int(e)) }
func (e httpError) Code() int     { return int(e) }

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err       error
		want      dberr.Kind
		lookAlike bool // other sources have it, too
	}{
		{err: nil, want: dberr.Other},
		{err: errors.New("no such table: x"), want: dberr.Other},
		{err: context.Canceled, want: dberr.Other},
		{err: context.DeadlineExceeded, want: dberr.Other},
		{err: sql.ErrNoRows, want: dberr.Other},
		{err: sql.ErrTxDone, want: dberr.Other},

		{err: pgError("40001"), want: dberr.Retry},
		{err: pgError("40P01"), want: dberr.Retry},
		{err: pgError("55P03"), want: dberr.Retry},
		{err: pgError("40002"), want: dberr.Other},
		{err: pgError("23505"), want: dberr.Other},
		{err: pgError("57014"), want: dberr.Other},
		{err: pgError(""), want: dberr.Other},
		{err: pgError("08006"), want: dberr.Unavailable},
		{err: pgError("53300"), want: dberr.Unavailable},
		{err: pgError("57P01"), want: dberr.Unavailable},
		{err: pgError("57P02"), want: dberr.Unavailable},
		{err: pgError("57P03"), want: dberr.Unavailable},
		{err: pgError("57P05"), want: dberr.Unavailable},
		{err: pgError("25P03"), want: dberr.Unavailable},
		{err: pgError("25P04"), want: dberr.Unavailable},
		{err: pgError("25006"), want: dberr.Unavailable},
		{err: pgError("58030"), want: dberr.Unavailable},
		{err: message("40001"), want: dberr.Retry},
		{err: message("57P01"), want: dberr.Unavailable},
		{err: message("23505"), want: dberr.Other},
		{err: pgError("25P02"), want: dberr.Other},
		{err: pgError("25001"), want: dberr.Other},

		{err: sqliteError(5), want: dberr.Retry},
		{err: sqliteError(5 | 1<<8), want: dberr.Retry}, // SQLITE_BUSY_RECOVERY
		{err: sqliteError(5 | 2<<8), want: dberr.Retry}, // SQLITE_BUSY_SNAPSHOT
		{err: sqliteError(6 | 1<<8), want: dberr.Retry}, // SQLITE_LOCKED_SHAREDCACHE
		{err: sqliteError(10 | 4<<8), want: dberr.Unavailable},
		{err: sqliteError(13), want: dberr.Unavailable},
		{err: sqliteError(14), want: dberr.Unavailable},
		{err: sqliteError(19 | 6<<8), want: dberr.Other}, // SQLITE_CONSTRAINT_PRIMARYKEY
		{err: httpError(517), want: dberr.Other},
		{err: httpError(522), want: dberr.Other},

		{err: sqliteText("database is locked"), want: dberr.Retry},
		{err: sqliteText("no such table"), want: dberr.Other},
		{err: unsent("conn closed"), want: dberr.Unavailable},
		{err: unsent("conn busy"), want: dberr.Other},

		{err: mysqlError("Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction"), want: dberr.Retry},
		{err: mysqlError("Error 1205 (HY000): Lock wait timeout exceeded; try restarting transaction"), want: dberr.Retry},
		{err: mysqlError("Error 1205: Lock wait timeout exceeded"), want: dberr.Retry},
		{err: mysqlError("ERROR 1020 (HY000): Record has changed since last read in table 'x'"), want: dberr.Retry},
		{err: mysqlError("Error 3572 (HY000): Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."), want: dberr.Retry},
		{err: mysqlError("Error 1290 (HY000): The MySQL server is running with the --read-only option"), want: dberr.Unavailable},
		{err: mysqlError("Error 1040 (08004): Too many connections"), want: dberr.Unavailable},
		{err: mysqlError("Error 1062 (23000): Duplicate entry"), want: dberr.Other},
		{err: mysqlError("Error 1317 (70100): Query execution was interrupted"), want: dberr.Other},
		{err: mysqlError("the error 1213"), want: dberr.Other},
		{err: errors.New("Error 1213 (40001): of somebody else"), want: dberr.Other},
		{err: errors.New("invalid connection"), want: dberr.Unavailable, lookAlike: true},
		{err: errors.New("an invalid connection string"), want: dberr.Other},

		{err: &net.DNSError{Err: "no such host"}, want: dberr.Unavailable, lookAlike: true},
		{err: errors.New("sqlite3: database is locked"), want: dberr.Retry, lookAlike: true},
		{err: errors.New("database table is locked: x"), want: dberr.Retry, lookAlike: true},

		{err: driver.ErrBadConn, want: dberr.Unavailable},
		{err: sql.ErrConnDone, want: dberr.Unavailable},
		{err: io.ErrUnexpectedEOF, want: dberr.Unavailable, lookAlike: true},
		{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}, want: dberr.Unavailable, lookAlike: true},
		{err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, want: dberr.Unavailable, lookAlike: true},
		{err: &net.OpError{Op: "read", Err: errors.New("database is locked")}, want: dberr.Unavailable, lookAlike: true},
	} {
		require.Equal(t, c.want, dberr.Classify(c.err), "%v", c.err)
		if c.err != nil {
			wrapped := errors.Join(errors.New("apply failed"), fmt.Errorf("marking: %w", c.err))
			require.Equal(t, c.want, dberr.Classify(wrapped), "wrapped: %v", c.err)
			stated := c.want
			if c.lookAlike {
				stated = dberr.Other
			}
			require.Equal(t, stated, dberr.Stated(wrapped), "stated: %v", c.err)
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
	require.Equal(t, dberr.Retry, dberr.Stated(err), "lock held: %v", err)
	require.NoError(t, one.Commit())
	_, err = two.ExecContext(ctx, "INSERT INTO x VALUES (2)")
	require.Equal(t, dberr.Retry, dberr.Stated(err), "old snapshot: %v", err)

	absent, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "no", "such", "folder.db"))
	require.NoError(t, err)
	defer absent.Close()
	err = absent.PingContext(ctx)
	require.Equal(t, dberr.Unavailable, dberr.Classify(err), "cannot open: %v", err)

	_, err = db.ExecContext(ctx, "SELECT * FROM absent")
	require.Error(t, err)
	require.Equal(t, dberr.Other, dberr.Classify(err))
}
