package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A full disk is said as such, whatever the database.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_pragma=max_page_count(4)")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE TABLE t (x)")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", strings.Repeat("x", 1<<16))
	require.Error(t, err)
	for _, full := range []error{fmt.Errorf("publishing: %w", err), &pgconn.PgError{Code: "53100"}} {
		p := refusal(full)
		require.Equal(t, http.StatusServiceUnavailable, p.Status)
		require.Contains(t, p.Detail, "disk")
		require.Positive(t, p.retryAfter)
	}
	require.NotContains(t, refusal(&pgconn.PgError{Code: "57P01"}).Detail, "disk")
}

// Each error that says that the database is away for now is 503, and the call can be made
// again.
func TestAway(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		unsent{}, driver.ErrBadConn, sql.ErrConnDone, io.ErrUnexpectedEOF, sender.ErrRetryTx, &net.OpError{Op: "read", Err: errors.New("reset")},
		&pgconn.PgError{Code: "57P01"}, &pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "55P03"}, &pgconn.PgError{Code: "25006"}, context.DeadlineExceeded,
	} {
		p := refusal(fmt.Errorf("reading: %w", err))
		require.Equal(t, http.StatusServiceUnavailable, p.Status, "%T %v", err, err)
		require.Positive(t, p.retryAfter)
	}
	for _, err := range []error{errors.New("a mistake"), &pgconn.PgError{Code: "42601"}, context.Canceled} {
		require.Equal(t, http.StatusInternalServerError, refusal(err).Status, "%v", err)
	}
}

// unsent is like pgconn's error of a connection that is closed already.
type unsent struct{}

func (unsent) Error() string     { return "conn closed" }
func (unsent) SafeToRetry() bool { return true }
