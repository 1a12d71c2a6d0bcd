package sqlite

import (
	"database/sql"
	"encoding/binary"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

var ofText = regexp.MustCompile(`\b(pattern|scope|key|object|status) = $`)

// SQLite plans "column = ?" by whether it is given a number like 1, and "LIMIT ?" by any
// number, so it compiles such a statement again for each execution. No hot one is of these.
func TestHotStatementsAreCompiledOnce(t *testing.T) {
	path := t.TempDir() + "/events.db"
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	s, err := New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, db.Close())
	tls := libc.NewTLS()
	defer tls.Close()
	text := func(s string) uintptr {
		p, err := libc.CString(s)
		require.NoError(t, err)
		t.Cleanup(func() { libc.Xfree(tls, p) })
		return p
	}
	pointer := func(get func(p uintptr) int32) uintptr {
		p := libc.Xcalloc(tls, 1, 8) // C's own memory: the race detector has pointers into Go's checked
		defer libc.Xfree(tls, p)
		require.EqualValues(t, sqlite3.SQLITE_OK, get(p))
		return uintptr(binary.LittleEndian.Uint64(libc.GoBytes(p, 8)))
	}
	conn := pointer(func(p uintptr) int32 {
		return sqlite3.Xsqlite3_open_v2(tls, text(path), p, sqlite3.SQLITE_OPEN_READWRITE, 0)
	})
	defer sqlite3.Xsqlite3_close_v2(tls, conn)
	for _, query := range hot() {
		stmt := pointer(func(p uintptr) int32 { return sqlite3.Xsqlite3_prepare_v2(tls, conn, text(query), -1, p, 0) })
		for n := range int64(3) {
			number := int32(0)
			for _, m := range parameter.FindAllStringSubmatchIndex(query, -1) {
				at := number + 1
				if m[3] > m[2] {
					at = int32(query[m[2]] - '0')
				}
				number = max(number, at)
				if ofText.MatchString(query[:m[0]]) {
					sqlite3.Xsqlite3_bind_text(tls, stmt, at, text("a"), -1, 0)
				} else {
					sqlite3.Xsqlite3_bind_int64(tls, stmt, at, n)
				}
			}
			sqlite3.Xsqlite3_step(tls, stmt) // it may find nothing, or be refused
			sqlite3.Xsqlite3_reset(tls, stmt)
		}
		if n := sqlite3.Xsqlite3_stmt_status(tls, stmt, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0); n > 0 {
			t.Errorf("it was compiled again %d times:\n%s", n, query)
		}
		sqlite3.Xsqlite3_finalize(tls, stmt)
	}
}
