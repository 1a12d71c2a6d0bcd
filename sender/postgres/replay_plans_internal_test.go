package postgres

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

// The cost of a replay's step does not grow with other rows.
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
		// Make parallel plans cheap, as they are on large tables.
		`SELECT set_config('parallel_setup_cost', '0', true), set_config('parallel_tuple_cost', '0', true), set_config('min_parallel_index_scan_size', '0', true)`,
		txSettings,
	} {
		_, err := tx.Exec(t.Context(), c.text(query))
		require.NoError(t, err)
	}
	for name, query := range map[string]string{
		"selectReplayDead": selectReplayDead, "selectReplayDeadOf": selectReplayDeadOf, "selectReplayAged": selectReplayAged, "selectReplayAgedOf": selectReplayAgedOf, "selectReplayDelivered": selectReplayDelivered,
		"takeDead": takeDead, "stillDelivered": stillDelivered, "nextReplay": nextReplay, "selectReplayDeliveredOf": selectReplayDeliveredOf, "selectReplayOwned": selectReplayOwned, "selectLocked": selectLocked,
		"lockReplays": lockReplays, "moveReplays": moveReplays, "insertLate": insertLate.many, "insertLate of one": insertLate.one, "deleteLate": deleteLate, "deleteOrphanedLate": deleteOrphanedLate,
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

// A replay for one subscription, or for one subscriber, reads only their deliveries, of
// delivered ones and of dead letters.
func TestReplayOfOneReadsItsOwn(t *testing.T) {
	c := newCrowd(t)
	ctx := t.Context()
	c.exec(`INSERT INTO {}.surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error)
		SELECT e, s, 1, now(), 1, 200, '', '' FROM generate_series(1, 6) e, generate_series(100000, 110000) s`)
	c.exec(`INSERT INTO {}.surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error)
		SELECT e, (SELECT no FROM {}.surehook_subscriptions WHERE id = 'wsub_0_0'), n, now(), 1, 200, '', '' FROM generate_series(1, 6) e, generate_series(1, 2) n`)
	c.exec(`DELETE FROM {}.surehook_pending`)
	c.exec(`INSERT INTO {}.surehook_ended (event, subscription, status, class, ended_at)
		SELECT e, s, 'dead_lettered', '', now() FROM generate_series(1, 6) e, generate_series(100000, 110000) s`)
	c.exec(`INSERT INTO {}.surehook_ended (event, subscription, status, class, ended_at)
		SELECT e, (SELECT no FROM {}.surehook_subscriptions WHERE id = 'wsub_0_2'), 'dead_lettered', '', now() FROM generate_series(1, 6) e`)
	for name, f := range map[string]replay.Filter{
		"delivered, of a subscription":    {Status: sender.StatusDelivered, Subscription: "wsub_0_0"},
		"delivered, of a subscriber":      {Status: sender.StatusDelivered, Subscriber: "sub_0"},
		"dead letters, of a subscription": {Status: sender.StatusDeadLettered, Subscription: "wsub_0_2"},
		"dead letters, of a subscriber":   {Status: sender.StatusDeadLettered, Subscriber: "sub_0"},
	} {
		before := c.blocks()
		p, err := c.PreviewReplay(ctx, f, 0)
		require.NoError(t, err)
		require.EqualValues(t, 6, p.Count, name)
		blocks := c.blocks() - before
		t.Logf("%s: blocks, beside 60,000 of others: %d", name, blocks)
		require.LessOrEqual(t, blocks, 500, name)
	}
}

// A step looks at a bounded number of running replays. It does not look again at those
// whose deliveries wait to be claimed.
func TestCostOfAStepDoesNotDependOnTheReplays(t *testing.T) {
	const running, ahead = 100, 1000
	c := newCrowd(t)
	ctx := t.Context()
	c.exec(`INSERT INTO {}.surehook_replays (id, filter, status_of, subscriber, subscription, rate, asked_by, reason, status, boundary, at, at_subscription, next_at, turn, matched, created_at)
		SELECT 'rpl_' || i, '{"Status":"dead_lettered"}', 'dead_lettered', '', 0, 0, '', '', 'running', 0, 0, 0, '-infinity', i, 0, now() FROM generate_series(1, ` + strconv.Itoa(running) + `) i`)
	c.exec(`INSERT INTO {}.surehook_waiting (subscription, event, due, number, tries, stood, epoch, replay, rank, single, notice, bytes)
		SELECT (SELECT min(no) FROM {}.surehook_subscriptions), r * 10000 + i, now(), 1, 0, 0, 0, r, 1, false, false, 100 FROM generate_series(1, ` + strconv.Itoa(running) + `) r, generate_series(1, ` + strconv.Itoa(ahead) + `) i`)
	step := func() (dispatch.ReplayStep, int) {
		before := c.blocks()
		s, err := c.StepReplays(ctx, 100, nil)
		require.NoError(t, err)
		return s, c.blocks() - before
	}
	s, most := step()
	steps := 1
	for ; s.More; steps++ {
		var blocks int
		s, blocks = step()
		most = max(most, blocks)
	}
	require.LessOrEqual(t, most, replaysAtOnce*100, "the most blocks of a step")
	require.GreaterOrEqual(t, steps, running/replaysAtOnce)
	require.Equal(t, running, c.count(`SELECT count(*) FROM {}.surehook_replays WHERE blocked_at IS NOT NULL`))
	c.exec(`UPDATE {}.surehook_replays SET next_at = clock_timestamp() + interval '1 hour'`) // as if all had waited for long
	s, blocks := step()
	require.Zero(t, s.Admitted)
	require.True(t, s.Next.After(time.Now()))
	t.Logf("blocks of a step: at most %d, and %d when none may get on", most, blocks)
	require.LessOrEqual(t, blocks, 100)
}

func (c *crowd) count(text string) (n int) {
	c.t.Helper()
	require.NoError(c.t, c.pool.QueryRow(context.Background(), strings.ReplaceAll(text, "{}", `"`+c.schema+`"`)).Scan(&n))
	return n
}
