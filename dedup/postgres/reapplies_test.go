package postgres_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
)

// An operator asks with one statement in psql, as the package's comment says. A row that
// would cover everything, or nothing, by a mistake is refused.
func TestReapplyByHand(t *testing.T) {
	ctx, obj := t.Context(), dedup.Object{Type: "invoice", ID: "17"}
	cfg := newSchema(t)
	s, pool, db := newPgx(t, cfg), openPool(t), openSQL(t, "search_path", cfg.Schema)
	require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) error {
		_, err := s.Mark(ctx, tx, "billing", "evt_1", time.Now())
		return err
	}))
	due := func() (due bool) {
		require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) (err error) {
			due, err = s.TakeReapply(ctx, tx, "billing", "evt_1", obj)
			return err
		}))
		return due
	}
	for _, values := range []string{
		"(scope, event_id) VALUES ('billing', 'evt_1')",
		"(scope, object_type, object_id) VALUES ('billing', 'invoice', '17')",
		"(scope, marked_from, marked_until) VALUES ('billing', '2024-03-01 12:00+00', '2999-03-02 12:00+00')",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.NoError(t, err, values)
		require.True(t, due(), values)
		require.False(t, due(), values)
	}
	for values, constraint := range map[string]string{
		"(scope) VALUES ('billing')":                                    "names_something",
		"(scope, marked_until) VALUES ('billing', now())":               "names_something",
		"(scope, event_id, object_id) VALUES ('billing', 'a', '17')":    "whole_object",
		"(scope, marked_from, marked_until) VALUES ('b', now(), now())": "span",
		"(scope, event_id, number) VALUES ('b', 'a', 7)":                "number",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.ErrorContains(t, err, constraint, values)
	}
}

// The release before has no requests: its markers are not due until they are asked for.
func TestReapplyAfterAnUpgrade(t *testing.T) {
	ctx := t.Context()
	schema := pgtest.Schema(t, openSQL(t))
	cfg := &postgres.Config{Schema: schema}
	s, pool, db := newPgx(t, cfg), openPool(t), openSQL(t, "search_path", schema)
	text, err := fs.ReadFile(postgres.Migrations(), "001_dedup.sql")
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, string(text))
	require.NoError(t, err)
	in := func(do func(tx pgx.Tx) (bool, error)) (got bool) {
		t.Helper()
		require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) (err error) {
			got, err = do(tx)
			return err
		}))
		return got
	}
	mark := func(id string) {
		require.True(t, in(func(tx pgx.Tx) (bool, error) { return s.Mark(ctx, tx, "billing", id, time.Now()) }))
	}
	mark("before")
	require.NoError(t, postgres.Migrate(ctx, db, cfg))
	mark("after")
	for _, asked := range []bool{false, true} {
		if asked {
			in(func(tx pgx.Tx) (bool, error) {
				_, err := s.AskReapply(ctx, tx, dedup.Reapply{Scope: "billing", From: time.Now().Add(-time.Hour), At: time.Now()})
				return err == nil, err
			})
		}
		for _, id := range []string{"before", "after"} {
			require.Equal(t, asked, in(func(tx pgx.Tx) (bool, error) { return s.TakeReapply(ctx, tx, "billing", id, dedup.Object{}) }))
		}
	}
}

// The cost of a duplicate must not grow with the requests for other events and objects.
func TestTakeReapplyUsesTheIndexes(t *testing.T) {
	ctx := t.Context()
	cfg := newSchema(t)
	db := openSQL(t, "search_path", cfg.Schema)
	for _, statement := range []string{
		`INSERT INTO surehook_dedup_markers SELECT 's', 'event-' || i, 'epoch'::timestamptz + i * interval '1 s' FROM generate_series(1, 20000) AS i`,
		`INSERT INTO surehook_dedup_reapplies (scope, event_id) SELECT 's', 'event-' || i FROM generate_series(1, 20000) AS i`,
		"ANALYZE surehook_dedup_markers", "ANALYZE surehook_dedup_reapplies",
	} {
		_, err := db.ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	rows, err := db.QueryContext(ctx, "EXPLAIN (COSTS OFF) "+postgres.TakeReapply, "s", "event-7", "invoice", "17")
	require.NoError(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan.String(), "using surehook_dedup_reapplies_by_event")
	require.NotContains(t, plan.String(), "Seq Scan")
}
