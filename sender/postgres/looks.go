package postgres

import (
	"strconv"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/processes"
)

// Statements that look for something due have these parameters: whether to look in each
// lane; from when on in each lane; then their own; and at last the process, if others share
// the work.

var (
	// selectIdle tells whether there is anything to do. It runs without the settings of the
	// store's transactions. EXISTS over the outbox would lose the order, and read dead
	// rows.
	selectIdle = shareableBy(9, func(due []string) string {
		return `SELECT {now}, ` + lookAround(due) + `, $7 AND (SELECT seq FROM surehook_outbox WHERE seq >= $8 ORDER BY seq LIMIT 1) IS NOT NULL`
	})
	// lockFeedHead begins an expansion. Its snapshot is older than that of the statement that
	// reads the events.
	lockFeedHead = shareableBy(8, func(due []string) string {
		return `SELECT {now}, set_config('surehook.expanding', ` + expansionState + `, true), coalesce(h.position, 0), coalesce(h.newest, '-infinity'), ` +
			operatorNo + `, ` + lookAround(due) + `, pg_current_snapshot()::text FROM (SELECT 1) one LEFT JOIN LATERAL (` + expanding + `) h ON true`
	})
	selectNextDue = shareableBy(7, func(due []string) string {
		return `SELECT least(` + due[0] + `, ` + due[1] + `, ` + due[2] + `)`
	})
)

// lookAround tells whether callers changed subscriptions, and when something is due next in
// each lane.
func lookAround(due []string) string {
	return `EXISTS (SELECT 1 FROM surehook_wakes), ` + due[0] + `, ` + due[1] + `, ` + due[2]
}

// shareableBy makes a statement that reads when something is due next in each lane. process
// is the number of that parameter.
func shareableBy(process int, text func(due []string) string) processes.Shareable {
	const now = `(SELECT {now})`
	due := func(also string) string {
		var lanes []string
		for lane := range sender.Lanes {
			whether, from := "$"+strconv.Itoa(lane+1), "$"+strconv.Itoa(lane+1+sender.Lanes)
			lanes = append(lanes, `CASE WHEN `+whether+` THEN (SELECT next_due FROM surehook_turns t WHERE lane = `+strconv.Itoa(lane)+
				` AND next_due < 'infinity' AND next_due >= `+from+also+` ORDER BY next_due, turn LIMIT 1) END`)
		}
		return text(lanes)
	}
	return processes.Shareable{Alone: due(""), Shared: due(` AND (next_due > ` + now + ` OR ` + freeTurn(now, "$"+strconv.Itoa(process)) + `)`)}
}

// lookArgs returns the parameters of such a statement.
func lookArgs(p *dispatch.ClaimParams, f turnsFrom, shared bool, more ...any) []any {
	args := append([]any{p.Lanes[0].Slots > 0, p.Lanes[1].Slots > 0, p.Lanes[2].Slots > 0, f[0], f[1], f[2]}, more...)
	if shared {
		args = append(args, p.By.Process)
	}
	return args
}
