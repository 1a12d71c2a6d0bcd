package postgres

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// crowd is a schema with many subscriptions. A claim takes deliveries of a few.
type crowd struct {
	*Store[pgx.Tx]
	t      *testing.T
	schema string
}

const (
	crowdOwners = 300
	crowdEach   = 5 // subscriptions of an owner's
	crowdEvents = 6 // to everyone
)

// newCrowd returns a crowd with a few thousand due deliveries.
func newCrowd(t *testing.T) *crowd {
	c := newEmptyCrowd(t)
	c.fill()
	return c
}

// newEmptyCrowd returns a crowd without rows, whose tables are never analysed.
func newEmptyCrowd(t *testing.T) *crowd {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, pgtest.With(pgtest.DSN(t), "pool_max_conns", "1"))
	require.NoError(t, err)
	c := &crowd{t: t, schema: newid.New("plans_", time.Now())}
	t.Cleanup(func() {
		_, _ = pool.Exec(ctx, `DROP SCHEMA "`+c.schema+`" CASCADE`)
		pool.Close()
	})
	c.Store, err = New(pool, &Config{Schema: c.schema})
	require.NoError(t, err)
	require.NoError(t, c.Migrate(ctx))
	c.exec(`DO $$ DECLARE r record; BEGIN FOR r IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = '"` + c.schema + `"'::regnamespace
		LOOP EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', r.name); END LOOP; END $$`)
	return c
}

func (c *crowd) fill() {
	t, ctx := c.t, context.Background()
	require.NoError(t, c.InTx(ctx, func(tx pgx.Tx) error {
		for owner := range crowdOwners {
			id := fmt.Sprintf("sub_%d", owner)
			if err := c.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: id}, nil); err != nil {
				return err
			}
			for i := range crowdEach {
				s := sender.Subscription{ID: fmt.Sprintf("wsub_%d_%d", owner, i), Subscriber: id, URL: "https://example.com/", EventTypes: []string{[]string{"*", id + ".other"}[i%2]}}
				if err := c.CreateSubscriptionTx(ctx, tx, s); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	require.NoError(t, c.InTx(ctx, func(tx pgx.Tx) error {
		drafts := make([]sender.Draft, crowdEvents)
		for i := range drafts {
			id := newid.New("evt_", time.Now())
			drafts[i] = sender.Draft{ID: id, Type: "a.b", Object: sender.Object{Type: "thing", ID: id}, BodyHead: []byte(`{"version":`), BodyTail: []byte(`}`)}
		}
		_, err := c.PublishTx(ctx, tx, drafts)
		return err
	}))
	for more := true; more; {
		x, _, err := c.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		more = x.More
	}
}

// park adds deliveries of a hundred paused subscriptions, some thousands of each: nine in
// ten are pending, the others wait for a retry. It also adds many notices about few
// subscriptions.
func (c *crowd) park(thousands int) {
	const parked, first = 100, int64(1 << 40)
	waiting := 100 * thousands
	pending := 9 * waiting
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_heads (subscription, subscriber, lane, open, pending, waiting, claimed_to)
		SELECT %d + s, %d + s, s %% 3, false, %d, %d, 0 FROM generate_series(1, %d) s`, first, first, pending, waiting, parked))
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_turns (lane, subscriber) SELECT lane, %d + s FROM generate_series(0, 2) lane, generate_series(1, %d) s`, first, parked))
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_pending (subscription, event, no, due, notice, bytes)
		SELECT %d + s, %d + e, %d + e, now(), false, 100 FROM generate_series(1, %d) e, generate_series(1, %d) s`, first, first, first, pending, parked))
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_waiting (subscription, event, due, number, tries, stood, epoch, replay, rank, single, notice, bytes)
		SELECT %d + s, %d + e, now(), 1, 1, 0, 0, 0, 0, false, false, 100 FROM generate_series(%d, %d) e, generate_series(1, %d) s`, first, first, pending+1, pending+waiting, parked))
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, notice, redacted, bytes)
		SELECT %d + s, %d + e, now(), 1, 1, 1, 1, now(), now(), 0, 0, false, false, false, 100 FROM generate_series(10001, 10010) e, generate_series(1, %d) s`, first, first, parked))
	c.exec(`INSERT INTO {}.surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, notify_due)
		SELECT 'ntc_' || i, 'k', 'sub_' || i % 10, 'wsub_' || i % 10, '', '', '', 0, now(), 'infinity' FROM generate_series(1, 50000) i`)
	c.exec(fmt.Sprintf(`INSERT INTO {}.surehook_outbox (event, patterns, subscriber, subscription, created_at, notice, bytes) SELECT %d + e, 'a.b a.* *', 0, 0, now(), false, 100 FROM generate_series(1, 10000) e`, first))
}

func (c *crowd) exec(text string, args ...any) {
	c.t.Helper()
	_, err := c.pool.Exec(context.Background(), strings.ReplaceAll(text, "{}", `"`+c.schema+`"`), args...)
	require.NoError(c.t, err, text)
}

// plan is a statement's generic plan.
func (c *crowd) plan(text string, settings string) string {
	c.t.Helper()
	ctx := context.Background()
	tx, err := c.pool.Begin(ctx)
	require.NoError(c.t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	_, err = tx.Exec(ctx, c.text(settings))
	require.NoError(c.t, err)
	_, err = tx.Exec(ctx, `PREPARE planned AS `+c.text(text), pgx.QueryExecModeSimpleProtocol)
	require.NoError(c.t, err, text)
	var parameters int
	require.NoError(c.t, tx.QueryRow(ctx, `SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'planned'`).Scan(&parameters))
	execute := `EXPLAIN EXECUTE planned`
	if parameters > 0 {
		execute += `(` + strings.Repeat("NULL, ", parameters-1) + `NULL)`
	}
	rows, err := tx.Query(ctx, execute, pgx.QueryExecModeSimpleProtocol)
	require.NoError(c.t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(c.t, err)
	_, err = tx.Exec(ctx, `DEALLOCATE planned`)
	require.NoError(c.t, err)
	return strings.Join(lines, "\n")
}

// atClaims are the statements that each step runs: of expanding, recording and
// claiming.
var atClaims = []string{
	"selectIdle", "nextDue", "selectDue", "selectIdle shared", "nextDue shared", "selectDue shared", "lockHeads", "lockWoken", "takeLeases", "takeLeases of one", "lockHeadsAt", "lockHeadsAt of one", "selectTargets", "selectSkippedOf", "deleteLost", "selectLeasesEnd",
	"selectCandidates", "selectOldPending", "selectLeastWaiting", "selectPending", "leaseWaiting", "selectArrived", "selectFiltered", "selectBehind", "selectPayloads", "deleteRedacted", "updateHeads", "updateHeads of one", "lockTurns", "updateTurns",
	"selectUnexpanded", "selectFew", "lockFew", "lockFew of one", "selectFewTargets", "selectMatches", "selectAllMatches", "selectAddressed", "selectFilters", "selectUnexpandedSkips", "selectUnseen", "isUnexpandedSkip", "deleteOutbox", "updateOutbox", "selectObjects",
	"selectLines", "selectLinesOf", "selectOvertaken", "precede", "changeLines", "stopLines", "endLines", "takeFirsts", "leaveLines", "leaveBefore", "updateHeadsAndLines", "updateHeadsAndLines of one", "selectAgain", "haltLines",
}

// small are the tables that may be read to their end.
var small = []string{
	" on surehook_wakes ",     // callers' changes since the last turn
	" on surehook_feed_head ", // one row
}

// whole are the steps of a plan that read a table or an index to its end. A condition on
// later columns of an index alone reads all of it. first has the first column of each index.
func whole(plan string, first map[string]string) (steps []string) {
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		m := indexScan.FindStringSubmatch(line)
		if m == nil && !strings.Contains(line, "Seq Scan on ") ||
			m != nil && i+1 < len(lines) && strings.Contains(lines[i+1], "Index Cond: ") && regexp.MustCompile(`\("?`+first[m[1]]+`"?[ ,)]`).MatchString(lines[i+1]) ||
			slices.ContainsFunc(small, func(part string) bool { return strings.Contains(line, part) }) {
			continue
		}
		steps = append(steps, strings.TrimSpace(line))
	}
	return steps
}

var indexScan = regexp.MustCompile(`(?:Scan using|Bitmap Index Scan on) (\w+)`)

// firstColumns has the first column of each index, "" where it is an expression.
func (c *crowd) firstColumns() map[string]string {
	c.t.Helper()
	rows, err := c.pool.Query(context.Background(), `SELECT i.relname, coalesce(a.attname, '') FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0] WHERE i.relnamespace = $1::regnamespace`, c.schema)
	require.NoError(c.t, err)
	first := map[string]string{}
	var index, column string
	_, err = pgx.ForEachRow(rows, []any{&index, &column}, func() error {
		first[index] = column
		return nil
	})
	require.NoError(c.t, err)
	return first
}

// The statements of a step read no table to its end, whether the tables were analysed
// before they were filled, or after, or never, and whenever the statement was planned.
func TestPlans(t *testing.T) {
	all := parameterStatements()
	require.Equal(t, []string{"Seq Scan on surehook_heads"}, whole("Seq Scan on surehook_heads", nil))
	c := newEmptyCrowd(t)
	first := c.firstColumns()
	require.Equal(t, "subscription", first["surehook_leases_pkey"])
	check := func(when string, crowded bool) {
		for _, name := range atClaims {
			text, ok := all[name]
			require.True(t, ok, name)
			plan := c.plan(text, txSettings)
			require.Empty(t, whole(plan, first), "%s of what is read whole by %s:\n%s", when, name, plan)
		}
		if crowded { // otherwise a table is as good as an index
			for _, text := range []string{selectIdle.Alone, selectIdle.Shared} {
				plan := c.plan(text, `SET LOCAL plan_cache_mode = force_generic_plan`) // it runs outside of the store's transactions
				require.Empty(t, whole(plan, first), "%s of what is read whole by\n%s\n%s", when, text, plan)
			}
			for _, settings := range []string{txSettings, `SET LOCAL plan_cache_mode = force_generic_plan`} { // in callers' transactions, too
				require.Contains(t, c.plan(selectSubscriptionsOf, settings), " using surehook_subscriptions_listed ", when)
			}
		}
		for name, index := range map[string]string{
			"selectDue": "surehook_turns_due", "selectPending": "surehook_pending_pkey", "leaseWaiting": "surehook_waiting_pkey", "takeLeases": "surehook_leases_pkey", "takeLeases of one": "surehook_leases_pkey",
			"selectCandidates": "surehook_waiting_due", "lockHeads": "surehook_heads_of", "updateTurns": "surehook_heads_due", "nextDue": "surehook_turns_due", "nextDue shared": "surehook_heads_due",
			"selectUnexpanded": "surehook_outbox_pkey", "selectFew": "surehook_patterns_pkey", "selectAllMatches": "surehook_patterns_all", "selectMatches": "surehook_patterns_pkey",
			"takeFirsts": "surehook_lines_pkey", "leaveLines": "surehook_lines_pkey", "leaveBefore": "surehook_lines_pkey", "updateHeadsAndLines": "surehook_lines_event", "updateHeadsAndLines of one": "surehook_lines_event", "selectLines": "surehook_lines_pkey", "selectLinesOf": "surehook_lines_pkey", "selectAgain": "surehook_lines_event",
			"haltLines": "surehook_lines_pkey",
		} {
			require.Contains(t, c.plan(all[name], txSettings), " using "+index+" ", "%s: %s", when, name)
		}
		if crowded {
			for _, name := range []string{"selectHours", "selectDeadGroups", "selectDeadGroupsOf", "selectUnread", "selectUnreadOf", "selectKinds", "selectAnswered"} {
				require.NotContains(t, c.plan(all[name], txSettings), "Seq Scan on surehook_attempts", "%s: %s", when, name)
				require.NotContains(t, c.plan(all[name], txSettings), "Seq Scan on surehook_ended", "%s: %s", when, name)
			}
		}
		for _, q := range []history.NoticeQuery{{Subscription: "x", Unread: true}, {Subscriber: "x"}, {Unread: true, Kind: "x"}} {
			index := map[bool]string{true: "surehook_notices_unread"}[q.Unread]
			if q.Subscription != "" {
				index = "surehook_notices_about"
			} else if q.Subscriber != "" {
				index = "surehook_notices_of"
			}
			text, _ := noticePage(&q)
			require.Contains(t, c.plan(text, txSettings), " using "+index+" ", "%s: %s", when, text)
		}
		for _, text := range []string{selectLines, takeFirsts} { // it would pass over other objects
			require.NotContains(t, c.plan(text, txSettings), " using surehook_lines_event ", when)
		}
		for _, text := range []string{leaveLines, leaveBefore, selectPayloads} { // no two of its answers are the same
			require.NotContains(t, c.plan(text, txSettings), "Memoize", when)
		}
		for _, text := range []string{updateHeads.many, updateHeads.one, updateWholeHeads.many, updateWholeHeads.one, updateHeadsAndLines.many, updateHeadsAndLines.one} {
			require.Contains(t, c.plan(text, txSettings), "Tid Scan on surehook_heads", when)
		}
		for _, text := range []string{selectDue.Alone, selectDue.Shared, selectNextDue.Shared} {
			require.NotContains(t, c.plan(text, txSettings), "Sort", when)
		}
	}
	check("never analysed, and empty", false) // connections keep their first plans
	c.fill()
	check("never analysed, and small", false)
	c.exec(`ANALYZE`)
	check("analysed, and small", false)
	c.park(1)
	c.exec(`INSERT INTO {}.surehook_subscriptions (id, subscriber, url, event_types, description, settings, created_at, status)
		SELECT 'gone_' || i, (SELECT min(no) FROM {}.surehook_subscribers), '', '[]', '', '{}', now(), 'swept' FROM generate_series(1, 20000) i`)
	check("analysed before many deliveries were parked", true)
	c.exec(`ANALYZE`)
	check("analysed", true)
}

// blocks counts the blocks of tables and indexes that were read so far.
func (c *crowd) blocks() (n int) {
	c.t.Helper()
	c.exec(`SELECT pg_stat_force_next_flush()`)
	c.exec(`SELECT 1`)
	require.NoError(c.t, c.pool.QueryRow(context.Background(), `SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint
		FROM pg_statio_user_tables WHERE schemaname = $1`, c.schema).Scan(&n))
	return n
}

// A claim reads no more with a million deliveries that cannot be claimed than without.
func TestCostOfAClaimDoesNotDependOnWhatIsParked(t *testing.T) {
	c := newCrowd(t)
	var claimed []dispatch.Claimed
	exchange := func() (blocks float64) { // of each that is recorded or claimed
		b := dispatch.Batch{Decide: dispatch.Policy{}.Decide}
		b.Claim.Lease = time.Minute
		b.Claim.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: 100, PerSubscriber: 10, PerSubscription: 2}
		b.Claim.Lanes[sender.LaneProven] = b.Claim.Lanes[sender.LaneNew]
		for i := range claimed {
			b.Results = append(b.Results, dispatch.Result{Key: claimed[i].Key, Token: claimed[i].Token, Number: claimed[i].Number, StartedAt: claimed[i].At, StatusCode: 204})
		}
		before := c.blocks()
		_, got, err := c.Step(context.Background(), dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(got.Claimed), 100)
		claimed = got.Claimed
		return float64(c.blocks()-before) / float64(len(got.Recorded)+len(got.Claimed))
	}
	exchange()
	alone := exchange()
	c.park(10)
	exchange()
	crowded := exchange()
	t.Logf("blocks for each delivery: %.1f, and with a million parked %.1f", alone, crowded)
	require.LessOrEqual(t, crowded, alone*1.5)
}
