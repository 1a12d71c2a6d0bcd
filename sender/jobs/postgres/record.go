package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// scan reads a job, and the columns behind it into more.
func scan(row pgtx.Row, more ...any) (r jobs.Record, err error) {
	var due, started, finished sql.Null[time.Time]
	var done, total sql.NullInt64
	var result, hash, state, input []byte
	var status string
	err = row.Scan(append([]any{
		&r.No, &r.ID, &r.Kind, &r.Owner, &r.CallbackURL, &status, &due, &r.Token, &r.Tries, &r.CancelRequested,
		&done, &total, &r.Error, &r.CreatedAt, &started, &finished, &r.KeyScope, &r.IdempotencyKey, &hash, &result, &state, &input,
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
	r.Status, r.CreatedAt = jobs.Status(status), r.CreatedAt.UTC()
	r.Due, r.StartedAt, r.FinishedAt = timeOf(due), timeOf(started), timeOf(finished)
	r.Result, r.Input, r.State, r.Hash = result, input, state, [sha256.Size]byte(hash)
	return r, nil
}

func timeOf(t sql.Null[time.Time]) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.V.UTC()
}

// nullable is NULL for the zero time. It cuts times to microseconds, as the database
// keeps them: some drivers would round.
func nullable(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

// blob is NULL for no bytes.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// one reads one row, or returns sql.ErrNoRows.
func one(ctx context.Context, in pgtx.Tx, query string, args []any, to func(row pgtx.Row) error) error {
	found := false
	err := in.Rows(ctx, query, args, func(row pgtx.Row) error {
		found = true
		return to(row)
	})
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

// many reads jobs, and the columns behind each into more.
func many(ctx context.Context, in pgtx.Tx, more []any, query string, args ...any) (all []jobs.Record, err error) {
	err = in.Rows(ctx, query, args, func(row pgtx.Row) error {
		r, err := scan(row, more...)
		all = append(all, r)
		return err
	})
	return all, err
}

func (s *Store[Tx]) now(ctx context.Context, in pgtx.Tx) (now time.Time, err error) {
	err = one(ctx, in, s.text.now, nil, func(row pgtx.Row) error { return row.Scan(&now) })
	return now.UTC(), fail("reading the time", err)
}

// InsertTx implements jobs.Store.
func (s *Store[Tx]) InsertTx(ctx context.Context, tx Tx, r jobs.Record) (jobs.Record, bool, error) {
	in, err := s.session(tx)
	if err != nil {
		return jobs.Record{}, false, err
	}
	err = one(ctx, in, s.text.insert, []any{r.ID, r.Kind, r.Owner, r.CallbackURL, r.KeyScope, r.IdempotencyKey, r.Hash[:], []byte(r.Input)},
		func(row pgtx.Row) error { return row.Scan(&r.No, &r.CreatedAt) })
	if err == nil {
		r.CreatedAt = r.CreatedAt.UTC()
		r.Status, r.Due = jobs.Queued, r.CreatedAt
		return r, false, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return jobs.Record{}, false, fail("storing a job", err)
	}
	first, found, err := s.ofKey(ctx, in, r.KeyScope, r.IdempotencyKey)
	if err == nil && !found { // it was pruned in between
		return jobs.Record{}, false, fmt.Errorf("postgres: storing a job: %w: its idempotency key has just been forgotten", sender.ErrRetryTx)
	}
	return first, true, err
}

// KeyTx implements jobs.Store.
func (s *Store[Tx]) KeyTx(ctx context.Context, tx Tx, scope, key string) (jobs.Record, bool, error) {
	in, err := s.session(tx)
	if err != nil || ident.Storable("", scope) != nil || ident.Storable("", key) != nil { // see get
		return jobs.Record{}, false, err
	}
	return s.ofKey(ctx, in, scope, key)
}

func (s *Store[Tx]) ofKey(ctx context.Context, in pgtx.Tx, scope, key string) (r jobs.Record, found bool, err error) {
	err = one(ctx, in, s.text.selectKey, []any{scope, key}, func(row pgtx.Row) (err error) {
		r, err = scan(row)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Record{}, false, nil
	}
	return r, err == nil, fail("looking for an idempotency key", err)
}

// DueTx implements jobs.Store. Jobs that others have locked are passed over.
func (s *Store[Tx]) DueTx(ctx context.Context, tx Tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
	in, err := s.session(tx)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := s.now(ctx, in)
	if err != nil {
		return nil, time.Time{}, err
	}
	except, err := json.Marshal(append([]string{}, q.Except...)) // which every driver takes, and not each an array
	if err != nil {
		return nil, time.Time{}, err
	}
	due, err := many(ctx, in, nil, s.text.due, q.Kind, now, int64(q.Limit), q.NoCallbacks, string(except))
	return due, now, fail("looking for jobs that are due", err)
}

// LockTx implements jobs.Store. The time is that after the wait for the lock.
func (s *Store[Tx]) LockTx(ctx context.Context, tx Tx, k jobs.Key) (jobs.Record, time.Time, error) {
	r, in, err := s.get(ctx, tx, s.text.lock, k)
	if err != nil {
		return jobs.Record{}, time.Time{}, err
	}
	now, err := s.now(ctx, in)
	return r, now, err
}

// GetTx implements jobs.Store.
func (s *Store[Tx]) GetTx(ctx context.Context, tx Tx, k jobs.Key) (jobs.Record, error) {
	r, _, err := s.get(ctx, tx, s.text.one, k)
	return r, err
}

func (s *Store[Tx]) get(ctx context.Context, tx Tx, query string, k jobs.Key) (r jobs.Record, in pgtx.Tx, err error) {
	if in, err = s.session(tx); err != nil {
		return r, nil, err
	}
	err = sql.ErrNoRows // PostgreSQL cannot store such an id, so no row has it
	if ident.Storable("", k.ID) == nil && ident.Storable("", k.Owner) == nil {
		err = one(ctx, in, query, []any{k.ID, k.Owner}, func(row pgtx.Row) (err error) {
			r, err = scan(row)
			return err
		})
	}
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Record{}, nil, fmt.Errorf("%w: job %q", jobs.ErrNotFound, k.ID)
	}
	return r, in, fail("reading a job", err)
}

// UpdateTx implements jobs.Store.
func (s *Store[Tx]) UpdateTx(ctx context.Context, tx Tx, r jobs.Record) error {
	in, err := s.session(tx)
	if err != nil {
		return err
	}
	var done, total any
	if r.Progress != nil {
		done, total = r.Progress.Done, r.Progress.Total
	}
	n, err := in.Exec(ctx, s.text.update, r.ID, string(r.Status), nullable(r.Due), r.Token, int64(r.Tries), r.CancelRequested, done, total,
		blob(r.State), blob(r.Result), r.Error, nullable(r.StartedAt), nullable(r.FinishedAt))
	if err == nil && n == 0 {
		err = s.unchanged(ctx, in, r.ID)
	}
	return fail("changing a job", err)
}

// unchanged is why an update has changed nothing.
func (s *Store[Tx]) unchanged(ctx context.Context, in pgtx.Tx, id string) error {
	// An id that is not there: nothing was locked, so nothing was begun either.
	err := one(ctx, in, s.text.one, []any{id, ""}, func(pgtx.Row) error { return pgtx.ErrEnded })
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: job %q", jobs.ErrNotFound, id)
	}
	return err
}

// ListTx implements jobs.Store.
func (s *Store[Tx]) ListTx(ctx context.Context, tx Tx, q jobs.ListQuery) (page []jobs.Record, next int64, err error) {
	in, err := s.session(tx)
	if err != nil {
		return nil, 0, err
	}
	if ident.Storable("", q.Owner) != nil || ident.Storable("", q.Kind) != nil {
		return nil, 0, nil // see get
	}
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	const doing = "listing jobs"
	where := ` WHERE no < ` + arg(cmp.Or(q.Before, int64(math.MaxInt64)))
	if q.Owner != "" {
		where += ` AND owner = ` + arg(q.Owner)
		if q.Status != "" && !q.Status.Finished() {
			where += ` AND finished_at IS NULL`
		}
	}
	most := max(q.Examine, q.Limit+1)
	newest := ` ORDER BY no DESC LIMIT ` + arg(int64(most))
	if q.Kind != "" || q.Status != "" {
		// How far this call looks is found first. Each statement sees what is committed by then.
		// If jobs were pruned after the look, the same number would reach further back, and the
		// next page would begin behind jobs that nobody has looked at.
		var last, n int64
		err = one(ctx, in, `SELECT coalesce(min(no), 0), count(*) FROM (SELECT no `+s.text.candidates+where+newest+`) j`, args,
			func(row pgtx.Row) error { return row.Scan(&last, &n) })
		if err != nil {
			return nil, 0, fail(doing, err)
		}
		if n == int64(most) {
			next = last
		}
		where += ` AND no >= ` + arg(last)
	}
	// Results can be large. Only jobs that match and fit are read whole.
	bound := cmp.Or(int64(q.Bytes), math.MaxInt64)
	query, and := s.text.list+arg(bound)+s.text.sizes+s.text.candidates+where+newest+`) c`, ` WHERE `
	for _, f := range [...]struct{ column, value string }{{"kind", q.Kind}, {"status", string(q.Status)}} {
		if f.value != "" {
			query, and = query+and+f.column+` = `+arg(f.value), ` AND `
		}
	}
	query += ` ORDER BY no DESC LIMIT ` + arg(int64(q.Limit+1)) + `) c WINDOW down AS (ORDER BY no DESC)) c ON c.no = j.no WHERE c.fits ORDER BY c.no DESC`
	var found int64
	page, err = many(ctx, in, []any{&found}, query, args...)
	page = page[:min(len(page), q.Limit)]
	switch {
	case err != nil:
		return nil, 0, fail(doing, err)
	case int64(len(page)) < found:
		return page, page[len(page)-1].No, nil
	}
	return page, next, nil
}

// PruneTx implements jobs.Store. It skips rows that others have locked.
func (s *Store[Tx]) PruneTx(ctx context.Context, tx Tx, q jobs.PruneQuery) (int, error) {
	in, err := s.session(tx)
	if err != nil {
		return 0, err
	}
	n, err := in.Exec(ctx, s.text.prune, q.Age.Microseconds(), int64(q.Limit), cmp.Or(int64(q.Bytes), math.MaxInt64))
	return int(n), fail("pruning jobs", err)
}
