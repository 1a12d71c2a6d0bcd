package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/dedup"
)

// AskReapply implements [dedup.Reapplies].
func (*Store) AskReapply(ctx context.Context, tx *sql.Tx, r dedup.Reapply) (int64, error) {
	r, err := r.Prepare()
	if err != nil {
		return 0, err
	}
	if tx == nil {
		return 0, errNoTx
	}
	res, err := tx.ExecContext(ctx, `
		INSERT INTO surehook_dedup_reapplies (scope, event_id, object_type, object_id, marked_from, marked_until, asked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		r.Scope, r.ID, r.Object.Type, r.Object.ID, orNull(r.From), orNull(r.Until), r.At.UnixMicro())
	if err != nil {
		return 0, dedup.WrapError(ctx, "asking for events to be applied again", err)
	}
	number, err := res.LastInsertId()
	return number, dedup.WrapError(ctx, "asking for events to be applied again", err)
}

// ListReapplies implements [dedup.Reapplies].
func (*Store) ListReapplies(ctx context.Context, tx *sql.Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	if err := dedup.CheckListReapplies(scope, after, limit); err != nil {
		return nil, err
	}
	if tx == nil {
		return nil, errNoTx
	}
	requests, err := listReapplies(ctx, tx, scope, after, limit)
	return requests, dedup.WrapError(ctx, "listing requests to apply again", err)
}

func listReapplies(ctx context.Context, tx *sql.Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT number, scope, event_id, object_type, object_id, marked_from, marked_until, asked_at
		FROM surehook_dedup_reapplies WHERE scope = ? AND number > ? ORDER BY number LIMIT ?`, scope, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var requests []dedup.Reapply
	for rows.Next() {
		var r dedup.Reapply
		var from, until sql.NullInt64
		var at int64
		if err := rows.Scan(&r.Number, &r.Scope, &r.ID, &r.Object.Type, &r.Object.ID, &from, &until, &at); err != nil {
			return nil, err
		}
		r.From, r.Until, r.At = fromNull(from), fromNull(until), time.UnixMicro(at).UTC()
		requests = append(requests, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return requests, nil
}

// CancelReapply implements [dedup.Reapplies].
func (*Store) CancelReapply(ctx context.Context, tx *sql.Tx, scope string, number int64) error {
	if err := dedup.CheckReapplyNumber(scope, number); err != nil {
		return err
	}
	n, err := exec(ctx, tx, `DELETE FROM surehook_dedup_reapplies WHERE scope = ? AND number = ?`, scope, number)
	if err == nil && n == 0 {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "cancelling a request to apply again", err)
}

// lastReapply is the number of the last request that covers the marker at hand. The two
// arguments are the event's object.
const lastReapply = `(
	SELECT max(number) FROM surehook_dedup_reapplies AS r
	WHERE r.scope = surehook_dedup_markers.scope AND r.event_id IN ('', surehook_dedup_markers.id)
		AND r.object_type IN ('', ?) AND r.object_id IN ('', ?)
		AND marked_at <= asked_at
		AND (marked_from IS NULL OR marked_at >= marked_from)
		AND (marked_until IS NULL OR marked_at < marked_until))`

const takeReapply = `
	UPDATE surehook_dedup_markers SET reapplied = ` + lastReapply + `
	WHERE scope = ? AND id = ? AND reapplied < ` + lastReapply

// TakeReapply implements [dedup.Reapplies].
func (*Store) TakeReapply(ctx context.Context, tx *sql.Tx, scope, id string, obj dedup.Object) (bool, error) {
	if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx, takeReapply, obj.Type, obj.ID, scope, id, obj.Type, obj.ID)
	if err != nil {
		return false, dedup.WrapError(ctx, "looking for a request to apply an event again", err)
	}
	return n == 1, nil
}

// AdvanceAgain implements [dedup.Reapplies].
func (*Store) AdvanceAgain(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx, `
		INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version) VALUES (?, ?, ?, ?)
		ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
		WHERE excluded.version >= v.version`,
		scope, obj.Type, obj.ID, version)
	if err != nil {
		return false, dedup.WrapError(ctx, "advancing a version again", err)
	}
	return n == 1, nil
}

func orNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func fromNull(at sql.NullInt64) time.Time {
	if !at.Valid {
		return time.Time{}
	}
	return time.UnixMicro(at.Int64).UTC()
}
