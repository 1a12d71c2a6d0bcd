package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
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
