package postgres

import "github.com/surehook/surehook/internal/pgtx"

type statements struct {
	record, claimAllLines, claimScopeLines, claimEvent, release, removeEvent, begun, removeLine, putBack, status, scopeStatus, overdue string
}

func statementsIn(schema string) statements {
	named := func(text string) string { return pgtx.InSchema(schema, text) }
	return statements{
		record: named(record), claimAllLines: named(claimAllLines), claimScopeLines: named(claimScopeLines), claimEvent: named(claimEvent), release: named(release),
		removeEvent: named(removeEvent), begun: begun, removeLine: named(removeLine), putBack: named(putBack), status: named(status), scopeStatus: named(scopeStatus),
		overdue: named(overdue),
	}
}

const (
	// A line that exists is locked until the event is committed. A transaction that
	// removes the line's last event meanwhile waits, and then sees the new event. If its
	// snapshot is older (REPEATABLE READ), it fails instead: for that, the line is
	// written, with its values unchanged but one_scope: events of before go with their line.
	record = `WITH fresh AS (
			INSERT INTO surehook_inbox_events (scope, id, line, type, version, body) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (scope, id) DO NOTHING RETURNING 1, ` + pgtx.Durable + `
		), line AS (
			INSERT INTO surehook_inbox_lines AS l (scope, line, due_at, one_scope) SELECT $1, $3, clock_timestamp(), $7::boolean FROM fresh
			ON CONFLICT (scope, line) DO UPDATE SET due_at = l.due_at, one_scope = excluded.one_scope
		)
		SELECT EXISTS (SELECT 1 FROM fresh)`

	// The time is asked for once, or every line that waits would be compared with it. The
	// rows are locked, so their places stay.
	claimAllLines = claimLinesWhere + `NOT surehook_inbox_lines.one_scope AND due_at <= (SELECT clock_timestamp()) ORDER BY due_at` + claimLinesLimit
	// Scope and time are compared as one, which the index of both alone can do. By the one of
	// all scopes, the events of a small scope stand behind those of a large one.
	claimScopeLines = claimLinesWhere + `(scope, due_at) >= ($4, '-infinity') AND (scope, due_at) <= ($4, (SELECT clock_timestamp()))
			ORDER BY scope, due_at` + claimLinesLimit

	// The column's table is named, as the error must name it if the column is missing.
	claimLinesWhere = `UPDATE surehook_inbox_lines SET due_at = clock_timestamp() + $2::bigint * interval '1 microsecond', token = $3
		WHERE ctid = ANY(ARRAY(SELECT ctid FROM surehook_inbox_lines WHERE `
	claimLinesLimit = ` LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING scope, line, surehook_inbox_lines.one_scope`

	claimEvent = `UPDATE surehook_inbox_events SET attempt = attempt + 1, first_at = coalesce(first_at, clock_timestamp())
		WHERE scope = $1 AND id = (SELECT id FROM surehook_inbox_events WHERE scope = $1 AND line = $2 ORDER BY version, no LIMIT 1)
		RETURNING id, type, version, body, attempt, (extract(epoch FROM clock_timestamp() - first_at) * 1000000)::bigint`

	release = `UPDATE surehook_inbox_lines SET due_at = clock_timestamp() + $4::bigint * interval '1 microsecond', token = 0
		WHERE scope = $1 AND line = $2 AND token = $3`

	// The line was written in the same transaction before, unless the function has ended that
	// by a statement such as ROLLBACK. Then each statement is a transaction of its own, and
	// the event must stay, since its effect is gone.
	removeEvent = `DELETE FROM surehook_inbox_events WHERE scope = $1 AND id = $2 AND pg_current_xact_id_if_assigned() IS NOT NULL`
	begun       = `SELECT pg_current_xact_id_if_assigned() IS NOT NULL`

	removeLine = `DELETE FROM surehook_inbox_lines AS l WHERE scope = $1 AND line = $2
		AND NOT EXISTS (SELECT 1 FROM surehook_inbox_events AS e WHERE e.scope = l.scope AND e.line = l.line)`

	putBack = `UPDATE surehook_inbox_events SET reason = $3 WHERE scope = $1 AND id = $2`

	status = statusWhere + `EXISTS (SELECT 1 FROM surehook_inbox_lines AS l WHERE l.scope = e.scope AND l.line = e.line AND NOT l.one_scope)`

	scopeStatus = statusWhere + `scope = $1`
	statusWhere = `SELECT count(*), count(nullif(reason, '')), count(*) FILTER (WHERE recorded_at > clock_timestamp()), (extract(epoch FROM min(recorded_at)) * 1000000)::bigint FROM surehook_inbox_events AS e WHERE `

	overdue = `SELECT count(*), coalesce(min(scope), '') FROM surehook_inbox_lines AS l JOIN surehook_inbox_events AS e USING (scope, line)
		WHERE due_at <= (SELECT clock_timestamp()) - $2::bigint * interval '1 microsecond' AND CASE WHEN $1::text = '' THEN one_scope ELSE scope <> $1 END`
)
