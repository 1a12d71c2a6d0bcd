package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

// What a step of a replay costs does not grow with what else there is.
func TestReplaysAreReadByIndex(t *testing.T) {
	const schema = "replay_plans"
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	c, err := newCore("New", pool, &Config{Schema: schema})
	require.NoError(t, err)
	require.NoError(t, c.Migrate(t.Context()))
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), `DROP SCHEMA `+schema+` CASCADE`) })
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, query := range []string{
		`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error)
			SELECT i, 1, 1, now(), 1, 200, CASE i % 2 WHEN 0 THEN '' ELSE 'status' END, '' FROM generate_series(1, 50000) i`,
		`INSERT INTO surehook_ended (subscription, event, status, class, ended_at) SELECT 1, i, 'dead_lettered', 'status', now() FROM generate_series(1, 50000, 2) i`,
		`ANALYZE surehook_attempts, surehook_ended`,
		// As if there were much more.
		`SELECT set_config('parallel_setup_cost', '0', true), set_config('parallel_tuple_cost', '0', true), set_config('min_parallel_index_scan_size', '0', true)`,
		own,
	} {
		_, err := tx.Exec(t.Context(), c.text(query))
		require.NoError(t, err)
	}
	for name, query := range map[string]string{
		"selectReplayDead": selectReplayDead, "selectReplayDeadOf": selectReplayDeadOf, "selectReplayDelivered": selectReplayDelivered,
		"takeDead": takeDead, "stillDelivered": stillDelivered, "selectRunning": selectRunning, "selectLocked": selectLocked,
		"lockReplays": lockReplays, "moveReplays": moveReplays, "insertLate": insertLate, "deleteLate": deleteLate, "deleteLeftLate": deleteLeftLate,
	} {
		prepared, err := tx.Prepare(t.Context(), name, c.text(query))
		require.NoError(t, err)
		args := strings.TrimSuffix(strings.Repeat("NULL, ", len(prepared.ParamOIDs)), ", ")
		if args != "" {
			args = "(" + args + ")"
		}
		rows, err := tx.Query(t.Context(), `EXPLAIN (VERBOSE) EXECUTE "`+name+`"`+args, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, name)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, name)
		plan := strings.Join(lines, "\n")
		for _, whole := range []string{"Seq Scan", "hashed SubPlan", "Gather"} {
			require.NotContains(t, plan, whole, "%s:\n%s", name, plan)
		}
	}
}
