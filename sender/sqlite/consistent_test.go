package sqlite_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// consistent checks that the heads' counts are the numbers of the rows, that nothing is due
// before its head, except what is due by now, and that of each line just the right delivery is
// out. A head whose deliveries are held back by its subscription's rate is due when that allows
// another.
func consistent(t testing.TB, db *sql.DB, now time.Time) {
	t.Helper()
	wrong, to := make([]int, len(wrongRows)), make([]any, len(wrongRows))
	for i := range wrong {
		to[i] = &wrong[i]
	}
	require.NoError(t, db.QueryRow(countWrongRows, now.UnixMicro()).Scan(to...))
	for i, n := range wrong {
		if n > 0 {
			t.Errorf("%d %s", n, wrongRows[i].text)
		}
	}
}

type wrongRow struct{ text, query string }

// out has the deliveries that are out, and when they are due. Those that a resume has skipped
// are not among them: a claim passes over them, and a sweep ends them.
const out = `SELECT p.subscription, p.event, 'pending' AS at, max(p.due, h.resumed_at) AS due FROM surehook_pending p JOIN surehook_heads h USING (subscription) WHERE p.event > h.left_to
	UNION ALL SELECT subscription, event, 'leased', until FROM surehook_leases
	UNION ALL SELECT w.subscription, w.event, 'waiting', iif(w.epoch < h.epoch, h.resumed_at, w.due) FROM surehook_waiting w JOIN surehook_heads h USING (subscription)
		WHERE NOT EXISTS (SELECT 1 FROM surehook_left f WHERE f.subscription = w.subscription AND f.epoch > w.epoch AND f.event >= w.event)`

var wrongRows = append([]wrongRow{
	{"heads miscount what is pending, waiting, leased or dead-lettered", `SELECT count(*) FROM surehook_heads h
		WHERE pending <> (SELECT count(*) FROM surehook_pending WHERE subscription = h.subscription)
		OR waiting <> (SELECT count(*) FROM surehook_waiting WHERE subscription = h.subscription)
		OR leased <> (SELECT count(*) FROM surehook_leases WHERE subscription = h.subscription)
		OR dead <> (SELECT count(*) FROM surehook_ended WHERE subscription = h.subscription AND status = 'dead_lettered')`},
	{"deliveries are in several tables, or have no head", `SELECT count(*) FROM (SELECT subscription, event FROM surehook_pending
		UNION ALL SELECT subscription, event FROM surehook_leases UNION ALL SELECT subscription, event FROM surehook_waiting
		UNION ALL SELECT subscription, event FROM surehook_ended UNION ALL SELECT subscription, event FROM l WHERE place < 3 AND out = 0
		) d GROUP BY subscription, event HAVING count(*) > 1 OR NOT EXISTS (SELECT 1 FROM surehook_heads h WHERE h.subscription = d.subscription)`},
	{"heads are due after something of theirs", `SELECT count(*) FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription
		WHERE h.open AND h.leased = 0 AND iif(h.open, s.settings ->> 'Rate', 1) = 0
		AND coalesce(h.next_due, 9223372036854775807) > (SELECT max(?1, coalesce(min(due), 9223372036854775807)) FROM o WHERE o.subscription = h.subscription)`},
	{"heads are due after the first of their leases has ended", `SELECT count(*) FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription
		WHERE h.open AND iif(h.open, s.settings ->> 'Rate', 1) = 0 AND coalesce(h.next_due, 9223372036854775807) > (SELECT max(?1, min(until)) FROM surehook_leases WHERE subscription = h.subscription)`},
	{"heads are never due although something is out", `SELECT count(*) FROM surehook_heads h
		WHERE h.open AND h.next_due IS NULL AND EXISTS (SELECT 1 FROM o WHERE o.subscription = h.subscription)`},
	{"heads are open and their subscriptions held or gone, or the other way round, or are due and not open", `SELECT count(*) FROM surehook_heads h
		JOIN surehook_subscriptions s ON s.no = h.subscription WHERE h.open <> (s.status IN ('active', 'closing')) OR NOT h.open AND h.next_due IS NOT NULL`},
	{"heads take the first of their leases to end later than it does", `SELECT count(*) FROM surehook_heads h
		WHERE leased > 0 AND leases_end > (SELECT min(until) FROM surehook_leases WHERE subscription = h.subscription)`},
	{"heads do not know of what waits since before a resume", `SELECT count(*) FROM surehook_heads h
		WHERE resumed_to IS NULL AND open AND EXISTS (SELECT 1 FROM o JOIN surehook_waiting w USING (subscription, event)
			WHERE o.subscription = h.subscription AND w.epoch < h.epoch)`},
	{"turns are due after a head of theirs", `SELECT count(*) FROM surehook_heads h WHERE h.next_due IS NOT NULL AND EXISTS (SELECT 1 FROM o WHERE o.subscription = h.subscription) AND NOT EXISTS (
		SELECT 1 FROM surehook_turns t WHERE t.lane = h.lane AND t.subscriber = h.subscriber AND t.next_due <= max(?1, h.next_due))`},
	{"counts of live or held deliveries, or of dead letters, are not those of the heads", `SELECT count(*) FROM surehook_counts c WHERE
		live <> (SELECT coalesce(sum(pending + waiting + leased + behind), 0) FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription WHERE s.status IN ('active', 'closing'))
		OR held <> (SELECT coalesce(sum(pending + waiting + leased + behind), 0) FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription WHERE s.status IN ('paused', 'disabled'))
		OR dead <> (SELECT count(*) FROM surehook_ended WHERE status = 'dead_lettered')`},
	{"counts of subscriptions or notices are not the numbers of the rows", `SELECT count(*) FROM surehook_counts c WHERE
		(active, paused, disabled, closing) <> (SELECT coalesce(sum(status = 'active'), 0), coalesce(sum(status = 'paused'), 0),
			coalesce(sum(status = 'disabled'), 0), coalesce(sum(status = 'closing'), 0) FROM surehook_subscriptions)
		OR notices <> (SELECT count(*) FROM surehook_notices WHERE acknowledged_at = 0)`},
	{"deliveries have an attempt missing", `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription HAVING max(number) <> count(*) OR min(number) <> 1)`},
}, wrongLines...)

var countWrongRows = func() string {
	var counts []string
	for _, wrong := range wrongRows {
		counts = append(counts, "(SELECT coalesce(sum(n), 0) FROM ("+strings.Replace(wrong.query, "count(*)", "count(*) AS n", 1)+"))")
	}
	return `WITH l AS MATERIALIZED (` + linesOut + `), o AS MATERIALIZED (` + out + `) SELECT ` + strings.Join(counts, ", ")
}()
