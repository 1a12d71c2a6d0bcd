package mysql

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/internal/sqlstore"
)

// AskReapply implements [dedup.Reapplies].
func (*Store) AskReapply(ctx context.Context, tx *sql.Tx, r dedup.Reapply) (int64, error) {
	return sqlstore.AskReapply(ctx, tx, r)
}

// ListReapplies implements [dedup.Reapplies].
func (*Store) ListReapplies(ctx context.Context, tx *sql.Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	return sqlstore.ListReapplies(ctx, tx, scope, after, limit)
}

// CancelReapply implements [dedup.Reapplies].
func (*Store) CancelReapply(ctx context.Context, tx *sql.Tx, scope string, number int64) error {
	return sqlstore.CancelReapply(ctx, tx, scope, number)
}

// lastReapply is the number of the last request that covers a marker, or 0. A marker's time
// never changes, so it may be read before the marker is locked.
const lastReapply = `
SELECT COALESCE(MAX(r.number), 0) FROM surehook_dedup_markers AS m
JOIN surehook_dedup_reapplies AS r ON r.scope = m.scope AND r.event_id IN ('', m.id)
	AND r.object_type IN ('', ?) AND r.object_id IN ('', ?)
	AND m.marked_at <= r.asked_at
	AND (r.marked_from IS NULL OR m.marked_at >= r.marked_from)
	AND (r.marked_until IS NULL OR m.marked_at < r.marked_until)
WHERE m.scope = ? AND m.id = ?`

// TakeReapply implements [dedup.Reapplies].
func (*Store) TakeReapply(ctx context.Context, tx *sql.Tx, scope, id string, obj dedup.Object) (bool, error) {
	if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
		return false, err
	}
	due, err := takeReapply(ctx, tx, scope, id, obj)
	return due, dedup.WrapError(ctx, "looking for a request to apply an event again", err)
}

// takeReapply asks in two statements: an UPDATE that reads the requests would lock them under
// REPEATABLE READ. Most duplicates need the first one alone.
func takeReapply(ctx context.Context, tx *sql.Tx, scope, id string, obj dedup.Object) (bool, error) {
	if tx == nil {
		return false, sqlstore.ErrNoTx
	}
	var number int64
	err := tx.QueryRowContext(ctx, lastReapply, obj.Type, obj.ID, scope, id).Scan(&number)
	if err != nil || number == 0 {
		return false, err
	}
	n, err := sqlstore.Exec(ctx, tx, `UPDATE surehook_dedup_markers SET reapplied = ? WHERE scope = ? AND id = ? AND reapplied < ?`, number, scope, id, number)
	return n == 1, err
}

// AdvanceAgain implements [dedup.Reapplies].
func (*Store) AdvanceAgain(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	current, err := raise(ctx, tx, advanceAgain, scope, obj, version)
	return current, dedup.WrapError(ctx, "advancing a version again", err)
}
