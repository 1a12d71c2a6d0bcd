package postgres

import "github.com/surehook/surehook/internal/pgtx"

// texts are the statements as they are sent.
type texts struct {
	insert, selectKey, due, now, lock, one, update, prune string
	list, sizes, candidates                               string // parts of them
}

const (
	// narrow are the columns that are never large.
	narrow = `j.no, j.id, j.kind, j.owner, j.callback_url, j.status, j.due, j.token, j.tries, j.cancel_requested,
		j.done, j.total, j.error, j.created_at, j.started_at, j.finished_at, j.key_scope, j.idempotency_key, j.hash`
	whole     = narrow + `, j.result, j.state, i.input`
	withInput = ` FROM surehook_jobs j JOIN surehook_job_inputs i ON i.no = j.no `
	owned     = `WHERE j.id = $1 AND ($2::text = '' OR j.owner = $2::text)`
)

func newTexts(sent func(string) string) texts {
	return texts{
		insert: sent(`WITH at AS MATERIALIZED (SELECT {now} AS now, ` + pgtx.Durable + `),
			j AS (INSERT INTO surehook_jobs (id, kind, owner, callback_url, status, due, token, tries, cancel_requested, error, created_at,
					key_scope, idempotency_key, hash)
				SELECT $1::text, $2::text, $3::text, $4::text, 'queued', at.now, 0, 0, false, '', at.now, $5::text, $6::text, $7::bytea FROM at
				ON CONFLICT (key_scope, idempotency_key) WHERE idempotency_key <> '' DO NOTHING RETURNING no, created_at),
			i AS (INSERT INTO surehook_job_inputs (no, input) SELECT no, $8::bytea FROM j)
			SELECT no, created_at FROM j`),
		selectKey: sent(`SELECT ` + whole + withInput + `WHERE j.key_scope = $1 AND j.idempotency_key = $2 AND j.idempotency_key <> ''`),
		now:       sent(`SELECT {now}`),
		due: sent(`SELECT ` + whole + withInput + `WHERE j.kind = $1 AND j.finished_at IS NULL AND j.due <= $2
			AND (j.callback_url = '' OR NOT $4::boolean) AND j.owner NOT IN (SELECT json_array_elements_text($5::text::json))
			ORDER BY j.due, j.no LIMIT $3 FOR NO KEY UPDATE OF j SKIP LOCKED`),
		lock: sent(`SELECT ` + narrow + `, j.result, j.state, NULL::bytea FROM surehook_jobs j ` + owned + ` FOR NO KEY UPDATE OF j`),
		one:  sent(`SELECT ` + whole + withInput + owned),
		list: sent(`SELECT ` + narrow + `, j.result, NULL::bytea, NULL::bytea, c.found
			FROM surehook_jobs j JOIN (SELECT no, sum(size) OVER down = size OR sum(size) OVER down <= `),
		sizes:      sent(` AS fits, count(*) OVER () AS found FROM (SELECT no, size FROM (SELECT no, kind, status, coalesce(octet_length(result), 0) AS size `),
		candidates: sent(`FROM surehook_jobs`),
		// The job was locked in the same transaction before, unless a function has ended that by
		// a statement such as ROLLBACK. Then this is a transaction of its own, and would store
		// the function's state without its effects.
		update: sent(`UPDATE surehook_jobs SET status = $2, due = $3, token = $4, tries = $5, cancel_requested = $6,
			done = $7, total = $8, state = $9, result = $10, error = $11, started_at = $12, finished_at = $13
			WHERE id = $1 AND pg_current_xact_id_if_assigned() IS NOT NULL RETURNING ` + pgtx.Durable),
		// The length of a large value is known without reading it.
		prune: sent(`WITH locked AS MATERIALIZED (SELECT no, finished_at, coalesce(octet_length(result), 0) AS size
				FROM surehook_jobs WHERE finished_at < {now} - $1::bigint * interval '1 microsecond'
				ORDER BY finished_at, no LIMIT $2 FOR UPDATE SKIP LOCKED),
			old AS MATERIALIZED (SELECT no FROM (
					SELECT l.no, row_number() OVER oldest AS place, sum(l.size + coalesce(octet_length(i.input), 0)) OVER oldest AS sum
					FROM locked l LEFT JOIN surehook_job_inputs i ON i.no = l.no WINDOW oldest AS (ORDER BY l.finished_at, l.no)) s
				WHERE place = 1 OR sum <= $3),
			i AS (DELETE FROM surehook_job_inputs WHERE no IN (SELECT no FROM old))
			DELETE FROM surehook_jobs WHERE no IN (SELECT no FROM old)`),
	}
}
