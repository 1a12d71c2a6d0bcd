package postgres

import "github.com/surehook/surehook/internal/pgtx"

// statements are the texts with the names of one schema.
type statements struct {
	mark, advance, markAndAdvance, version, prune string
	setAside, letter, letters, discard            string

	askReapply, reapplies, cancelReapply, takeReapply, advanceAgain, pruneReapplies string
}

func statementsIn(schema string) statements {
	in := func(text string) string { return pgtx.InSchema(schema, text) }
	return statements{
		mark: in(mark), advance: in(advance), markAndAdvance: in(markAndAdvance), version: in(version), prune: in(prune),
		setAside: in(setAside), letter: in(letter), letters: in(letters), discard: in(discard),
		askReapply: in(askReapply), reapplies: in(reapplies), cancelReapply: in(cancelReapply),
		takeReapply: in(takeReapply), advanceAgain: in(advanceAgain), pruneReapplies: in(pruneReapplies),
	}
}

// A caller's acknowledged change is durable under every setting of the server: each
// statement that changes a row for the caller also returns pgtx.Durable, whose value
// nobody reads. A statement that changes nothing needs no such thing: nobody sees
// another's durable commit before it is on the disk.
const (
	mark = `
INSERT INTO surehook_dedup_markers (scope, id, marked_at) VALUES ($1, $2, $3)
ON CONFLICT (scope, id) DO NOTHING
RETURNING ` + pgtx.Durable

	advance = `
INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
WHERE excluded.version > v.version
RETURNING ` + pgtx.Durable

	// The second part reads the first, so the marker is locked before the version. Both look
	// for conflicts in what is committed by then, not in what was when the statement began.
	markAndAdvance = `
WITH marked AS (
	INSERT INTO surehook_dedup_markers (scope, id, marked_at) VALUES ($1, $2, $3)
	ON CONFLICT (scope, id) DO NOTHING
	RETURNING scope, ` + pgtx.Durable + `
), advanced AS (
	INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version)
	SELECT scope, $4::text, $5::text, $6::bigint FROM marked
	ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
	WHERE excluded.version > v.version
	RETURNING version
)
SELECT EXISTS (SELECT FROM marked), EXISTS (SELECT FROM advanced)`

	version = `
SELECT coalesce(max(version), 0) FROM surehook_dedup_versions
WHERE scope = $1 AND object_type = $2 AND object_id = $3`

	// The rows are found by their places, since the planner might join the keys with the
	// whole table. The rows are locked, so their places stay.
	prune = `
DELETE FROM surehook_dedup_markers WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM surehook_dedup_markers
	WHERE marked_at < $1 ORDER BY marked_at LIMIT $2
	FOR UPDATE SKIP LOCKED))`

	letterColumns = `scope, id, type, object_type, object_id, version, body, reason, at`

	setAside = `
INSERT INTO surehook_dedup_dead_letters (` + letterColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (scope, id) DO UPDATE SET type = excluded.type, object_type = excluded.object_type,
	object_id = excluded.object_id, version = excluded.version, body = excluded.body,
	reason = excluded.reason, at = excluded.at
RETURNING ` + pgtx.Durable

	// Times are read as microseconds since 1970. Where a driver gets text (pgx in the modes
	// that suit poolers), it could read those of the DateStyle ISO alone.
	readLetter = `scope, id, type, object_type, object_id, version, body, reason, (extract(epoch FROM at) * 1000000)::bigint`

	letter = `SELECT ` + readLetter + ` FROM surehook_dedup_dead_letters WHERE scope = $1 AND id = $2`

	letters = `
SELECT ` + readLetter + ` FROM surehook_dedup_dead_letters
WHERE scope = $1 AND id > $2 ORDER BY id LIMIT $3`

	discard = `DELETE FROM surehook_dedup_dead_letters WHERE scope = $1 AND id = $2 RETURNING ` + pgtx.Durable

	askReapply = `
INSERT INTO surehook_dedup_reapplies (scope, event_id, object_type, object_id, marked_from, marked_until, asked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
RETURNING number, ` + pgtx.Durable

	reapplies = `
SELECT number, scope, event_id, object_type, object_id, (extract(epoch FROM marked_from) * 1000000)::bigint,
	(extract(epoch FROM marked_until) * 1000000)::bigint, (extract(epoch FROM asked_at) * 1000000)::bigint
FROM surehook_dedup_reapplies WHERE scope = $1 AND number > $2 ORDER BY number LIMIT $3`

	cancelReapply = `DELETE FROM surehook_dedup_reapplies WHERE scope = $1 AND number = $2 RETURNING ` + pgtx.Durable

	// A marker's time never changes, so it may be read first. Its reapplied may have
	// changed since the statement began, and the UPDATE compares with what is committed
	// by then.
	takeReapply = `
WITH due AS (
	SELECT max(r.number) AS number FROM surehook_dedup_markers AS m
	JOIN surehook_dedup_reapplies AS r ON r.scope = $1 AND r.event_id IN ('', $2)
		AND r.object_type IN ('', $3) AND r.object_id IN ('', $4)
		AND m.marked_at <= r.asked_at
		AND (r.marked_from IS NULL OR m.marked_at >= r.marked_from)
		AND (r.marked_until IS NULL OR m.marked_at < r.marked_until)
	WHERE m.scope = $1 AND m.id = $2
)
UPDATE surehook_dedup_markers AS m SET reapplied = due.number FROM due
WHERE m.scope = $1 AND m.id = $2 AND m.reapplied < due.number
RETURNING ` + pgtx.Durable

	// The row is locked, also where it stays as it is.
	advanceAgain = `
INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
WHERE excluded.version >= v.version
RETURNING ` + pgtx.Durable

	pruneReapplies = `
DELETE FROM surehook_dedup_reapplies WHERE number = ANY (ARRAY(
	SELECT number FROM surehook_dedup_reapplies
	WHERE asked_at < $1 ORDER BY number LIMIT $2
	FOR UPDATE SKIP LOCKED))`
)
