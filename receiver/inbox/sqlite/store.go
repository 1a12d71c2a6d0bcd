// Package sqlite keeps the events of package inbox in an SQLite database (3.42 or
// later), through database/sql and any driver.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/fence"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/receiver/inbox"
)

// Store is an [inbox.Store] for the transactions of a *sql.DB. It is safe for concurrent
// use. Make one for a *sql.DB: it knows which file was there first, and writes nothing while
// that is not in its place.
type Store struct{ files sqlitetx.Files }

var _ inbox.Store[*sql.Tx] = (*Store)(nil)

// New returns a store. The tables must be there: see [Migrate]. The inboxes of several
// receivers may share them.
func New() *Store { return &Store{} }

// now is in microseconds, but exact to the millisecond only.
const now = `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`

const (
	claimAllLines = claimLinesOf + `surehook_inbox_lines_several_due WHERE one_scope = 0 AND ` + claimLinesDue
	// The index is named, because statistics of one large scope may speak for the other one,
	// by which the events of a small scope stand behind those of the large one.
	claimScopeLines = claimLinesOf + `surehook_inbox_lines_scope_due WHERE scope = ?4 AND ` + claimLinesDue

	claimLinesOf = `UPDATE surehook_inbox_lines SET due_at = ` + now + ` + ?1, token = ?2
		WHERE (scope, line) IN (SELECT scope, line FROM surehook_inbox_lines INDEXED BY `
	claimLinesDue = `due_at <= ` + now + ` ORDER BY due_at LIMIT ?3) RETURNING scope, line, surehook_inbox_lines.one_scope`

	claimEventQuery = `UPDATE surehook_inbox_events SET attempt = attempt + 1, first_at = coalesce(first_at, ` + now + `)
		WHERE no = (SELECT no FROM surehook_inbox_events WHERE scope = ? AND line = ? ORDER BY version, no LIMIT 1)
		RETURNING id, type, version, body, attempt, ` + now + ` - first_at`

	statusQuery      = statusWhere + `EXISTS (SELECT 1 FROM surehook_inbox_lines AS l WHERE l.scope = e.scope AND l.line = e.line AND l.one_scope = 0)`
	scopeStatusQuery = statusWhere + `scope = ?`
	statusWhere      = `SELECT count(*), count(nullif(reason, '')), count(*) FILTER (WHERE recorded_at > ` + now + `), min(recorded_at) FROM surehook_inbox_events AS e WHERE `

	overdueQuery = `SELECT count(*), coalesce(min(scope), '') FROM surehook_inbox_lines AS l JOIN surehook_inbox_events AS e USING (scope, line)
		WHERE due_at <= ` + now + ` - ?2 AND CASE WHEN ?1 = '' THEN one_scope ELSE scope <> ?1 END`
)

// RecordTx implements [inbox.Store].
func (s *Store) RecordTx(ctx context.Context, tx *sql.Tx, r inbox.Record) (bool, error) {
	if err := errors.Join(checkTx(tx), inbox.CheckRecord(r)); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, `INSERT INTO surehook_inbox_events (scope, id, line, type, version, body, recorded_at)
		VALUES (?, ?, ?, ?, ?, ?, `+now+`) ON CONFLICT (scope, id) DO NOTHING`, r.Scope, r.ID, r.Line, r.Type, r.Version, r.Body)
	if err == nil && n == 1 {
		_, err = s.exec(ctx, tx, `INSERT INTO surehook_inbox_lines (scope, line, due_at, one_scope) VALUES (?, ?, `+now+`, ?)
			ON CONFLICT (scope, line) DO UPDATE SET one_scope = excluded.one_scope WHERE one_scope <> excluded.one_scope`, r.Scope, r.Line, r.OneScope)
	}
	return n == 1, wrap("recording an event", err)
}

// ClaimTx implements [inbox.Store]. Its first statement takes the write lock, so that
// it never finds its snapshot too old.
func (s *Store) ClaimTx(ctx context.Context, tx *sql.Tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	if err := errors.Join(checkTx(tx), inbox.CheckClaim(limit, lease)); err != nil {
		return nil, err
	}
	claims, err := claimLines(ctx, tx, scope, limit, lease)
	if err = s.files.Kept(ctx, tx, err); err != nil {
		return nil, wrap("claiming lines", err)
	}
	kept := claims[:0]
	for _, c := range claims {
		var age int64
		err := tx.QueryRowContext(ctx, claimEventQuery, c.Scope, c.Line).
			Scan(&c.ID, &c.Type, &c.Version, &c.Body, &c.Attempt, &age)
		if errors.Is(err, sql.ErrNoRows) { // somebody has removed events by hand
			_, err = s.exec(ctx, tx, `DELETE FROM surehook_inbox_lines WHERE scope = ? AND line = ?`, c.Scope, c.Line)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, wrap("claiming an event", err)
		}
		c.Age = time.Duration(max(age, 0)) * time.Microsecond
		kept = append(kept, c)
	}
	return kept, nil
}

func claimLines(ctx context.Context, tx *sql.Tx, scope string, limit int, lease time.Duration) (claims []inbox.Claim, err error) {
	token := fence.Token()
	query, args := claimAllLines, []any{lease.Microseconds(), token, limit}
	if scope != "" {
		query, args = claimScopeLines, append(args, scope)
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		c := inbox.Claim{Token: token}
		if err := rows.Scan(&c.Scope, &c.Line, &c.OneScope); err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	return claims, rows.Err()
}

// FinishTx implements [inbox.Store].
func (s *Store) FinishTx(ctx context.Context, tx *sql.Tx, c inbox.Claim) error {
	if err := checkTx(tx); err != nil {
		return wrap("removing an event", err)
	}
	err := sqlitetx.Open(ctx, tx) // else the event would go without its effect
	if err == nil {
		err = s.held(ctx, tx, `UPDATE surehook_inbox_lines SET due_at = `+now+`, token = 0
			WHERE scope = ? AND line = ? AND token = ?`, c.Scope, c.Line, c.Token)
	}
	if err == nil {
		_, err = s.exec(ctx, tx, `DELETE FROM surehook_inbox_events WHERE scope = ? AND id = ?`, c.Scope, c.ID)
	}
	if err == nil {
		_, err = s.exec(ctx, tx, `DELETE FROM surehook_inbox_lines AS l WHERE scope = ? AND line = ?
			AND NOT EXISTS (SELECT 1 FROM surehook_inbox_events AS e WHERE e.scope = l.scope AND e.line = l.line)`, c.Scope, c.Line)
	}
	return wrap("removing an event", err)
}

// RetryTx implements [inbox.Store].
func (s *Store) RetryTx(ctx context.Context, tx *sql.Tx, c inbox.Claim, after time.Duration, reason string) error {
	err := s.held(ctx, tx, `UPDATE surehook_inbox_lines SET due_at = `+now+` + ?, token = 0
		WHERE scope = ? AND line = ? AND token = ?`, after.Microseconds(), c.Scope, c.Line, c.Token)
	if err == nil {
		_, err = s.exec(ctx, tx, `UPDATE surehook_inbox_events SET reason = ? WHERE scope = ? AND id = ?`, reason, c.Scope, c.ID)
	}
	return wrap("putting an event back", err)
}

// StatusTx implements [inbox.Store].
func (*Store) StatusTx(ctx context.Context, tx *sql.Tx, scope string) (s inbox.Status, err error) {
	if err := checkTx(tx); err != nil {
		return s, err
	}
	var oldest sql.NullInt64
	query, args := statusQuery, []any{}
	if scope != "" {
		query, args = scopeStatusQuery, append(args, scope)
	}
	err = tx.QueryRowContext(ctx, query, args...).Scan(&s.Events, &s.Failing, &s.Ahead, &oldest)
	if oldest.Valid {
		s.Oldest = time.UnixMicro(oldest.Int64).UTC()
	}
	return s, wrap("counting events", err)
}

// OverdueTx implements [inbox.Store].
func (*Store) OverdueTx(ctx context.Context, tx *sql.Tx, scope string, longer time.Duration) (o inbox.Overdue, err error) {
	if err := checkTx(tx); err != nil {
		return o, err
	}
	err = tx.QueryRowContext(ctx, overdueQuery, scope, longer.Microseconds()).Scan(&o.Events, &o.Scope)
	return o, wrap("counting overdue events", err)
}

// held changes the line of a claim, or returns inbox.ErrLeaseLost.
func (s *Store) held(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	if err := checkTx(tx); err != nil {
		return err
	}
	n, err := s.exec(ctx, tx, query, args...)
	if err == nil && n == 0 {
		return inbox.ErrLeaseLost
	}
	return err
}

// exec runs a statement that writes.
func (s *Store) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	res, err := tx.ExecContext(ctx, query, args...)
	if err = s.files.Kept(ctx, tx, err); err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func checkTx(tx *sql.Tx) error {
	if tx == nil {
		return fmt.Errorf("%w: the transaction is nil", inbox.ErrInvalid)
	}
	return nil
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s: %w", doing, dberr.Unmigrated("surehook_inbox_", err))
}
