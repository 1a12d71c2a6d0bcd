package postgres

import (
	"cmp"

	"github.com/surehook/surehook/sender"
)

// source is a table in which deliveries of a status may be. Some that are found there may
// have another status.
type source struct {
	table string
	// likely is the condition on rows that may match; the others only lie among them.
	likely string
	// heads and of are conditions on the subscriptions that may have some. If they are empty,
	// the table is ordered by event, so it is read for all at once, unless the query names
	// its subscriptions.
	heads, of string
	// only is the condition under which the table is read for all at once.
	only string
}

// Every delivery is in one of these sources: those that have not ended, by the state of
// their subscriptions; those that ended otherwise than delivered; and those that were
// attempted.
func unended(likelyWaiting, of string) []source {
	return []source{
		{table: "surehook_pending", likely: "true", heads: "pending > 0", of: of},
		{table: "surehook_waiting", likely: likelyWaiting, heads: "waiting > 0", of: of},
		{table: "surehook_lines", likely: "x.place < 3 AND " + likelyWaiting, heads: "behind > 0", of: of},
		{table: "surehook_leases", likely: "true", only: "true"}, // as many as there are attempts in flight
	}
}

func endedAs(status string) source {
	return source{table: "surehook_ended", likely: "x.status = '" + status + "'", only: "x.status = '" + status + "'"}
}

const (
	opened  = "s.status IN ('active', 'closing')"
	held    = "s.status IN ('paused', 'disabled')"
	dropped = "(s.status = 'deleted' OR s.left_to >= 0)"
	unswept = "s.status <> 'swept'"
)

var (
	// A delivery can have many attempts, and succeed twice.
	succeeded = source{table: "surehook_attempts", only: "x.number = 1",
		likely: "EXISTS (SELECT 1 FROM surehook_attempts y WHERE y.event = x.event AND y.subscription = x.subscription AND y.class = '')"}

	dead, cancelled, superseded = endedAs("dead_lettered"), endedAs("cancelled"), endedAs("superseded")
)

func sources(status sender.Status) []source {
	switch status {
	case sender.StatusPending:
		return unended("x.number = 0", opened)
	case sender.StatusAwaitingRetry:
		return unended("x.number > 0", opened)[1:]
	case sender.StatusHeld:
		return unended("true", held)
	case sender.StatusDeadLettered:
		return []source{dead}
	case sender.StatusCancelled:
		return append(unended("true", dropped), cancelled)
	case sender.StatusSuperseded:
		return []source{superseded}
	case sender.StatusDelivered:
		return []source{succeeded}
	}
	return append(unended("true", unswept), dead, cancelled, superseded, succeeded)
}

// firsts finds the first key of each subscription that has something in a source. Behind
// the position (event, subscription) comes the same event of later subscriptions.
func (s *source) firsts(sc *scope) (query string, args []any) {
	heads := "SELECT subscription FROM surehook_heads"
	if s.heads != "" {
		heads += " WHERE " + s.heads
	}
	const subscriptions = "surehook_subscriptions s"
	from := "(" + heads + " OFFSET 0) h JOIN " + subscriptions + " ON s.no = h.subscription"
	only, args := "", []any{}
	switch { // a query that names subscriptions starts from them, and their heads are not read
	case sc.subscription != 0:
		from, only = subscriptions, " AND s.no = $4"
		args = append(args, sc.subscription)
		if sc.subscriber != 0 {
			only += " AND s.subscriber = $5"
			args = append(args, sc.subscriber)
		}
	case sc.subscriber != 0:
		from, only = subscriptions, " AND s.subscriber = $4"
		args = append(args, sc.subscriber)
	}
	return `SELECT s.no, x.event FROM ` + from + ` CROSS JOIN LATERAL (
			SELECT x.event FROM ` + s.table + ` x WHERE x.subscription = s.no AND x.event >= $1
				AND x.event <= CASE WHEN s.no <= $3 THEN $2::bigint - 1 ELSE $2::bigint END` + s.ofOne() + `
			ORDER BY x.event DESC LIMIT 1) x
		WHERE ` + cmp.Or(s.of, "true") + only, args
}

// ofOne returns the conditions of a source that is read by subscription.
func (s *source) ofOne() string {
	if s.table == succeeded.table {
		return ` AND x.class = ''` // these have an index
	}
	return ""
}
