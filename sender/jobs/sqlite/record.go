package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender/jobs"
)

const (
	// narrow are the columns that are never large.
	narrow = `j.no, j.id, j.kind, j.owner, j.callback_url, j.status, j.due, j.token, j.tries, j.cancel_requested,
		j.done, j.total, j.error, j.created_at, j.started_at, j.finished_at, j.key_scope, j.idempotency_key, j.hash`
	locking = narrow + `, j.result, j.state, NULL`
	whole   = narrow + `, j.result, j.state, i.input`
	listing = narrow + `, j.result, NULL, NULL, c.found`

	withInput = ` FROM surehook_jobs j JOIN surehook_job_inputs i ON i.no = j.no `
	alone     = ` FROM surehook_jobs j `

	insertJob = `INSERT INTO surehook_jobs (id, kind, owner, callback_url, status, due, token, tries, cancel_requested, error,
			created_at, started_at, finished_at, key_scope, idempotency_key, hash)
		VALUES (?, ?, ?, ?, 'queued', ?5, 0, 0, 0, '', ?5, 0, 0, ?6, ?7, ?8)
		ON CONFLICT (key_scope, idempotency_key) WHERE idempotency_key <> '' DO NOTHING`
	insertInput = `INSERT INTO surehook_job_inputs (no, input) VALUES (?, ?)`
	updateJob   = `UPDATE surehook_jobs SET status = ?2, due = ?3, token = ?4, tries = ?5, cancel_requested = ?6, done = ?7, total = ?8,
			state = ?9, result = ?10, error = ?11, started_at = ?12, finished_at = ?13 WHERE id = ?1`

	selectKey  = `SELECT ` + whole + withInput + `WHERE j.key_scope = ? AND j.idempotency_key = ? AND j.idempotency_key <> ''`
	selectDue  = `SELECT ` + whole + withInput + `WHERE `
	dueFirst   = ` ORDER BY j.due, j.no LIMIT ?`
	anyDue     = `SELECT EXISTS (SELECT 1` + alone + `WHERE `
	selectOne  = `SELECT ` + whole + withInput + `WHERE j.id = ?1 AND (?2 = '' OR j.owner = ?2)`
	selectLock = `SELECT ` + locking + alone + `WHERE j.id = ?1 AND (?2 = '' OR j.owner = ?2)`

	// selectOld gives a JSON array of numbers. SQLite knows the length of a blob without
	// reading it.
	selectOld = `SELECT json_group_array(no) FROM (
			SELECT no, row_number() OVER oldest AS place, sum(size) OVER oldest AS sum FROM (
				SELECT j.no, j.finished_at, coalesce(length(j.result), 0) + coalesce(length(i.input), 0) AS size
				FROM surehook_jobs j LEFT JOIN surehook_job_inputs i ON i.no = j.no
				WHERE j.finished_at > 0 AND j.finished_at < ? ORDER BY j.finished_at, j.no LIMIT ?)
			WINDOW oldest AS (ORDER BY finished_at, no))
		WHERE place = 1 OR sum <= ?`
	deleteInputs = `DELETE FROM surehook_job_inputs WHERE no IN (SELECT value FROM json_each(?))`
	deleteJobs   = `DELETE FROM surehook_jobs WHERE no IN (SELECT value FROM json_each(?))`
)

// scan reads a job, and the columns behind it into more.
func scan(row interface{ Scan(...any) error }, more ...any) (r jobs.Record, err error) {
	var due, created, started, finished int64
	var done, total sql.NullInt64
	var result, hash, state, input []byte
	err = row.Scan(append([]any{
		&r.No, &r.ID, &r.Kind, &r.Owner, &r.CallbackURL, &r.Status, &due, &r.Token, &r.Tries, &r.CancelRequested,
		&done, &total, &r.Error, &created, &started, &finished, &r.KeyScope, &r.IdempotencyKey, &hash, &result, &state, &input,
	}, more...)...)
	if err != nil {
		return jobs.Record{}, err
	}
	if done.Valid {
		r.Progress = &jobs.Progress{Done: done.Int64, Total: total.Int64}
	}
	if len(hash) != sha256.Size {
		return jobs.Record{}, fmt.Errorf("job %s: its hash has %d bytes", r.ID, len(hash))
	}
	r.Due, r.CreatedAt, r.StartedAt, r.FinishedAt = timeOf(due), timeOf(created), timeOf(started), timeOf(finished)
	r.Result, r.Input, r.State, r.Hash = result, input, state, [sha256.Size]byte(hash)
	return r, nil
}

// InsertTx implements jobs.Store. It checks PRAGMA synchronous on tx's connection
// each time.
func (s *Store) InsertTx(ctx context.Context, tx *sql.Tx, r jobs.Record) (jobs.Record, bool, error) {
	if err := locked(ctx, tx); err != nil {
		return jobs.Record{}, false, err
	}
	const doing = "storing a job"
	if err := sqlitetx.Open(ctx, tx); err != nil { // else the job is stored without the caller's change
		return jobs.Record{}, false, fail(doing, err)
	}
	if err := s.keeps(ctx, tx); err != nil {
		return jobs.Record{}, false, err
	}
	now := s.now()
	res, err := tx.ExecContext(ctx, insertJob, r.ID, r.Kind, r.Owner, r.CallbackURL, now, r.KeyScope, r.IdempotencyKey, r.Hash[:])
	if err != nil {
		return jobs.Record{}, false, fail(doing, err)
	}
	inserted, err := res.RowsAffected()
	if err != nil {
		return jobs.Record{}, false, fail(doing, err)
	}
	if inserted == 0 {
		return ofKey(ctx, tx, r.KeyScope, r.IdempotencyKey)
	}
	if r.No, err = res.LastInsertId(); err == nil {
		_, err = tx.ExecContext(ctx, insertInput, r.No, []byte(r.Input))
	}
	if err != nil {
		return jobs.Record{}, false, fail(doing, err)
	}
	r.Status, r.Due, r.CreatedAt = jobs.Queued, timeOf(now), timeOf(now)
	return r, false, nil
}

// KeyTx implements jobs.Store.
func (s *Store) KeyTx(ctx context.Context, tx *sql.Tx, scope, key string) (jobs.Record, bool, error) {
	if err := locked(ctx, tx); err != nil {
		return jobs.Record{}, false, err
	}
	return ofKey(ctx, tx, scope, key)
}

func ofKey(ctx context.Context, tx *sql.Tx, scope, key string) (jobs.Record, bool, error) {
	r, err := scan(tx.QueryRowContext(ctx, selectKey, scope, key))
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Record{}, false, nil
	}
	return r, err == nil, fail("looking for an idempotency key", err)
}

// DueTx implements jobs.Store.
func (s *Store) DueTx(ctx context.Context, tx *sql.Tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
	if err := locked(ctx, tx); err != nil {
		return nil, time.Time{}, err
	}
	now := s.now()
	where, args := isDue(q, now)
	due, err := many(ctx, tx, nil, selectDue+where+dueFirst, append(args, q.Limit)...)
	return due, timeOf(now), fail("looking for jobs that are due", err)
}

// AnyDue implements jobs.Looker.
func (s *Store) AnyDue(ctx context.Context, queries []jobs.DueQuery) (some bool, err error) {
	err = s.InReadTx(ctx, func(tx *sql.Tx) error {
		for _, q := range queries {
			where, args := isDue(q, s.now())
			if err := tx.QueryRowContext(ctx, anyDue+where+`)`, args...).Scan(&some); err != nil || some {
				return fail("looking for jobs that are due", err)
			}
		}
		return nil
	})
	return some, err
}

// isDue is the condition of a query, with its arguments.
func isDue(q jobs.DueQuery, now int64) (where string, args []any) {
	where, args = `j.kind = ? AND j.finished_at = 0 AND j.due <= ?`, []any{q.Kind, now}
	if q.NoCallbacks {
		where += ` AND j.callback_url = ''`
	}
	if len(q.Except) > 0 {
		where += ` AND j.owner NOT IN (?` + strings.Repeat(`, ?`, len(q.Except)-1) + `)`
		for _, owner := range q.Except {
			args = append(args, owner)
		}
	}
	return where, args
}

// LockTx implements jobs.Store.
func (s *Store) LockTx(ctx context.Context, tx *sql.Tx, k jobs.Key) (jobs.Record, time.Time, error) {
	if err := locked(ctx, tx); err != nil {
		return jobs.Record{}, time.Time{}, err
	}
	r, err := one(ctx, tx, selectLock, k)
	return r, timeOf(s.now()), err
}

// GetTx implements jobs.Store.
func (s *Store) GetTx(ctx context.Context, tx *sql.Tx, k jobs.Key) (jobs.Record, error) {
	if tx == nil {
		return jobs.Record{}, errNoTx
	}
	return one(ctx, tx, selectOne, k)
}

// blob is NULL for no bytes.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func one(ctx context.Context, tx *sql.Tx, query string, k jobs.Key) (jobs.Record, error) {
	r, err := scan(tx.QueryRowContext(ctx, query, k.ID, k.Owner))
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Record{}, fmt.Errorf("%w: job %q", jobs.ErrNotFound, k.ID)
	}
	return r, fail("reading a job", err)
}

// many reads jobs, and the columns behind each into more.
func many(ctx context.Context, tx *sql.Tx, more []any, query string, args ...any) (all []jobs.Record, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows, more...)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// UpdateTx implements jobs.Store.
func (s *Store) UpdateTx(ctx context.Context, tx *sql.Tx, r jobs.Record) error {
	if tx == nil {
		return errNoTx
	}
	const doing = "changing a job"
	if err := sqlitetx.Open(ctx, tx); err != nil { // a function's state must not be stored without its effects
		return fail(doing, err)
	}
	var done, total any
	if r.Progress != nil {
		done, total = r.Progress.Done, r.Progress.Total
	}
	res, err := tx.ExecContext(ctx, updateJob, r.ID, string(r.Status), micros(r.Due), r.Token, r.Tries, r.CancelRequested, done, total,
		blob(r.State), blob(r.Result), r.Error, micros(r.StartedAt), micros(r.FinishedAt))
	if err != nil {
		return fail(doing, err)
	}
	if n, err := res.RowsAffected(); err != nil {
		return fail(doing, err)
	} else if n == 0 {
		return fmt.Errorf("%w: job %q", jobs.ErrNotFound, r.ID)
	}
	return nil
}

// ListTx implements jobs.Store.
func (s *Store) ListTx(ctx context.Context, tx *sql.Tx, q jobs.ListQuery) (page []jobs.Record, next int64, err error) {
	if tx == nil {
		return nil, 0, errNoTx
	}
	const doing = "listing jobs"
	candidates, args := ` FROM surehook_jobs WHERE no < ?`, []any{cmp.Or(q.Before, math.MaxInt64)}
	if q.Owner != "" {
		candidates, args = candidates+` AND owner = ?`, append(args, q.Owner)
		if q.Status != "" && !q.Status.Finished() {
			candidates += ` AND finished_at = 0`
		}
	}
	most := max(q.Examine, q.Limit+1)
	candidates, args = candidates+` ORDER BY no DESC LIMIT ?`, append(args, most)
	// Results can be large. Only jobs that match and fit are read whole.
	query, and, all := `SELECT `+listing+` FROM (SELECT no, sum(size) OVER down <= ? OR sum(size) OVER down = size AS fits, count(*) OVER () AS found
		FROM (SELECT no, size FROM (SELECT no, kind, status, coalesce(length(result), 0) AS size`+candidates+`)`, ` WHERE `,
		append([]any{cmp.Or(int64(q.Bytes), math.MaxInt64)}, args...)
	for _, f := range [...]struct{ column, value string }{{"kind", q.Kind}, {"status", string(q.Status)}} {
		if f.value != "" {
			query, and, all = query+and+f.column+` = ?`, ` AND `, append(all, f.value)
		}
	}
	query += ` ORDER BY no DESC LIMIT ?) WINDOW down AS (ORDER BY no DESC)) c CROSS JOIN surehook_jobs j ON j.no = c.no WHERE c.fits ORDER BY c.no DESC`
	found := 0
	page, err = many(ctx, tx, []any{&found}, query, append(all, q.Limit+1)...)
	page = page[:min(len(page), q.Limit)]
	switch {
	case err != nil:
		return nil, 0, fail(doing, err)
	case len(page) < found:
		return page, page[len(page)-1].No, nil
	case q.Kind == "" && q.Status == "":
		return page, 0, nil
	}
	// All candidates were examined: find out whether others follow, and from where.
	var last sql.NullInt64
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT min(no), count(*) FROM (SELECT no`+candidates+`)`, args...).Scan(&last, &n); err != nil {
		return nil, 0, fail(doing, err)
	}
	if n < most {
		return page, 0, nil
	}
	return page, last.Int64, nil
}

// PruneTx implements jobs.Store.
func (s *Store) PruneTx(ctx context.Context, tx *sql.Tx, q jobs.PruneQuery) (int, error) {
	if err := locked(ctx, tx); err != nil {
		return 0, err
	}
	const doing = "pruning jobs"
	var old string
	if err := tx.QueryRowContext(ctx, selectOld, s.now()-q.Age.Microseconds(), q.Limit, cmp.Or(int64(q.Bytes), math.MaxInt64)).Scan(&old); err != nil {
		return 0, fail(doing, err)
	}
	if _, err := tx.ExecContext(ctx, deleteInputs, old); err != nil {
		return 0, fail(doing, err)
	}
	res, err := tx.ExecContext(ctx, deleteJobs, old)
	if err != nil {
		return 0, fail(doing, err)
	}
	n, err := res.RowsAffected()
	return int(n), fail(doing, err)
}
