package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
)

// An operator asks with one statement in sqlite3, as the package's comment says. A row that
// would cover everything, or nothing, by a mistake is refused.
func TestReapplyByHand(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), pragmas)
	s, ctx, obj := sqlite.New(), t.Context(), dedup.Object{Type: "invoice", ID: "17"}
	require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) error {
		_, err := s.Mark(ctx, tx, "billing", "evt_1", time.Now())
		return err
	}))
	due := func() (due bool) {
		require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) (err error) {
			due, err = s.TakeReapply(ctx, tx, "billing", "evt_1", obj)
			return err
		}))
		return due
	}
	for _, values := range []string{
		"(scope, event_id) VALUES ('billing', 'evt_1')",
		"(scope, object_type, object_id) VALUES ('billing', 'invoice', '17')",
		"(scope, marked_from, marked_until) VALUES ('billing', strftime('%s', '2024-03-01 12:00') * 1000000, strftime('%s', '2999-03-02 12:00') * 1000000)",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.NoError(t, err, values)
		require.True(t, due(), values)
		require.False(t, due(), values)
	}
	for values, constraint := range map[string]string{
		"(scope) VALUES ('billing')":                                                          "names_something",
		"(scope, marked_until) VALUES ('billing', 1700000000000000)":                          "names_something",
		"(scope, event_id, object_id) VALUES ('billing', 'a', '17')":                          "whole_object",
		"(scope, marked_from) VALUES ('billing', 1700000000)":                                 "microseconds",
		"(scope, marked_from) VALUES ('billing', 1700000000000)":                              "microseconds",
		"(scope, marked_from) VALUES ('billing', '2026-03-01')":                               "microseconds",
		"(scope, marked_from, marked_until) VALUES ('b', 1700000000000002, 1700000000000001)": "span",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.ErrorContains(t, err, constraint, values)
	}
	require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) error {
		list, err := s.ListReapplies(ctx, tx, "billing", 0, 10)
		require.Len(t, list, 3)
		require.WithinDuration(t, time.Now(), list[0].At, time.Minute)
		return err
	}))
}

// The release before has no requests: its markers are not due until they are asked for,
// and its process goes on beside the new table.
func TestReapplyAfterAnUpgrade(t *testing.T) {
	ctx, s := t.Context(), sqlite.New()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	require.NoError(t, err)
	defer db.Close()
	first, err := sqlite.Migrations().Open("001_dedup.sql")
	require.NoError(t, err)
	defer func() { _ = first.Close() }()
	text := make([]byte, 1<<16)
	n, err := first.Read(text)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, string(text[:n]))
	require.NoError(t, err)
	mark := func(id string) {
		require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) error {
			fresh, err := s.Mark(ctx, tx, "billing", id, time.Now())
			require.True(t, fresh)
			return err
		}))
	}
	mark("before")
	require.NoError(t, sqlite.Migrate(ctx, db))
	mark("after")
	require.NoError(t, inTx(db)(ctx, func(tx *sql.Tx) error {
		for _, id := range []string{"before", "after"} {
			due, err := s.TakeReapply(ctx, tx, "billing", id, dedup.Object{})
			require.NoError(t, err)
			require.False(t, due)
		}
		if _, err := s.AskReapply(ctx, tx, dedup.Reapply{Scope: "billing", From: time.Now().Add(-time.Hour), At: time.Now()}); err != nil {
			return err
		}
		for _, id := range []string{"before", "after"} {
			due, err := s.TakeReapply(ctx, tx, "billing", id, dedup.Object{})
			require.NoError(t, err)
			require.True(t, due)
		}
		return nil
	}))
}

// The cost of a duplicate must not grow with the requests for other events and objects.
func TestTakeReapplyUsesTheIndexes(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"), pragmas)
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+sqlite.TakeReapply, "", "", "s", "a", "", "")
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan, "SEARCH surehook_dedup_markers USING PRIMARY KEY (scope=? AND id=?)", "%q", plan)
	require.Contains(t, plan, "SEARCH r USING INDEX surehook_dedup_reapplies_by_event (scope=? AND event_id=? AND object_type=? AND object_id=?)", "%q", plan)
	for _, step := range plan {
		require.NotContains(t, step, "SCAN")
	}
}
