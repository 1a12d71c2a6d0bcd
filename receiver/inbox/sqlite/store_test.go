package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/inboxtest"
	"github.com/surehook/surehook/receiver/inbox/sqlite"
)

func open(t *testing.T) *sql.DB {
	db := unmigrated(t)
	require.NoError(t, sqlite.Migrate(t.Context(), db))
	require.NoError(t, sqlite.Migrate(t.Context(), db), "again")
	return db
}

func unmigrated(t *testing.T) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "inbox.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Without its tables, or their last migration, a store says what to do.
func TestNotMigrated(t *testing.T) {
	older := open(t)
	_, err := older.Exec("DROP INDEX surehook_inbox_lines_several_due; ALTER TABLE surehook_inbox_lines DROP COLUMN one_scope")
	require.NoError(t, err)
	for _, db := range []*sql.DB{unmigrated(t), older} {
		for _, call := range []func(tx *sql.Tx) error{
			func(tx *sql.Tx) error {
				_, err := sqlite.New().ClaimTx(t.Context(), tx, "s", 10, time.Hour)
				return err
			},
			func(tx *sql.Tx) error { _, err := sqlite.New().ClaimTx(t.Context(), tx, "", 10, time.Hour); return err },
			func(tx *sql.Tx) error {
				_, err := sqlite.New().RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: "a", Line: "a", Type: "t", Version: 1, Body: []byte("x")})
				return err
			},
		} {
			require.ErrorContains(t, receiver.SQL(db, nil)(t.Context(), call), "call Migrate before")
		}
	}
}

// lose moves the file of a database away.
func lose(t *testing.T, db *sql.DB) func(t *testing.T) (back func()) {
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return nil
	}
	var path string
	require.NoError(t, db.QueryRow("SELECT file FROM pragma_database_list").Scan(&path))
	return func(t *testing.T) (back func()) {
		db.SetMaxOpenConns(1)
		require.NoError(t, os.Rename(path, path+".moved"))
		return func() { require.NoError(t, os.Rename(path+".moved", path)) }
	}
}

func TestStore(t *testing.T) {
	inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[*sql.Tx] {
		db := open(t)
		return inboxtest.Harness[*sql.Tx]{Store: sqlite.New(), InTx: receiver.SQL(db, nil), Lose: lose(t, db)}
	})
}

// Events that somebody has removed from the table leave lines behind. These lines go when
// they are claimed.
func TestRemovedByHand(t *testing.T) {
	db, store := open(t), sqlite.New()
	inTx := receiver.SQL(db, nil)
	claim := func() (claims []inbox.Claim) {
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) (err error) {
			claims, err = store.ClaimTx(t.Context(), tx, "s", 10, time.Hour)
			return err
		}))
		return claims
	}
	for _, id := range []string{"a", "b"} {
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: id, Line: id, Type: "t", Version: 1, Body: []byte("x")})
			return err
		}))
	}
	_, err := db.Exec("DELETE FROM surehook_inbox_events WHERE id = 'a'")
	require.NoError(t, err)
	require.Len(t, claim(), 1)
	var lines int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM surehook_inbox_lines").Scan(&lines))
	require.Equal(t, 1, lines)
}

// Events that were recorded while the clock was ahead are due once the statement of
// docs/receiving.md is run. Those that are claimed stay so.
func TestDueAtOnce(t *testing.T) {
	db, store := open(t), sqlite.New()
	inTx := receiver.SQL(db, nil)
	claim := func() (ids []string) {
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			claims, err := store.ClaimTx(t.Context(), tx, "s", 10, time.Hour)
			for _, c := range claims {
				ids = append(ids, c.ID)
			}
			return err
		}))
		return ids
	}
	record := func(id string) {
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: id, Line: id, Type: "t", Version: 1, Body: []byte("x")})
			return err
		}))
	}
	record("claimed")
	require.Equal(t, []string{"claimed"}, claim())
	record("ahead")
	_, err := db.Exec("UPDATE surehook_inbox_lines SET due_at = due_at + 365 * 86400 * 1000000 WHERE line = 'ahead'")
	require.NoError(t, err)
	require.Empty(t, claim())
	page, err := os.ReadFile("../../../docs/receiving.md")
	require.NoError(t, err)
	statement := regexp.MustCompile("`(UPDATE surehook_inbox_lines [^`]+)` on SQLite").FindSubmatch(page)
	require.NotNil(t, statement, "the page has no such statement")
	_, err = db.Exec(string(statement[1]))
	require.NoError(t, err)
	require.Equal(t, []string{"ahead"}, claim())
}

// Claiming looks at lines that are due, and at one event of each, however many events
// wait, in whichever scope.
func TestPlans(t *testing.T) {
	db := open(t)
	insert := func(scope string, lines int) {
		_, err := db.Exec(`WITH n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
			INSERT INTO surehook_inbox_lines (scope, line, due_at) SELECT ?, n, n FROM n`, lines, scope)
		require.NoError(t, err)
	}
	insert("large", 10_000)
	_, err := db.Exec("ANALYZE") // an application may do so
	require.NoError(t, err)
	insert("small", 1)
	for what, c := range map[string]struct{ query, want string }{
		"lines": {sqlite.ClaimAllLines, "USING COVERING INDEX surehook_inbox_lines_several_due (due_at<?)"},
		"scope": {sqlite.ClaimScopeLines, "USING COVERING INDEX surehook_inbox_lines_scope_due (scope=? AND due_at<?)"},
		"event": {sqlite.ClaimEvent, "USING COVERING INDEX surehook_inbox_events_line (scope=? AND line=?)"},
	} {
		plan := planOf(t, db, c.query)
		text := strings.Join(plan, "\n")
		require.Contains(t, text, c.want, what)
		require.NotContains(t, text, "TEMP B-TREE FOR ORDER BY", what)
		for _, step := range plan {
			require.False(t, strings.HasPrefix(step, "SCAN"), text)
		}
	}
}

func planOf(t *testing.T, db *sql.DB, query string) (plan []string) {
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, slices.Repeat([]any{1}, strings.Count(query, "?"))...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	return plan
}
