package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/dedup"
)

// AskReapply is of [dedup.Reapplies].
func AskReapply(ctx context.Context, tx *sql.Tx, r dedup.Reapply) (int64, error) {
	r, err := r.Prepare()
	if err != nil {
		return 0, err
	}
	number, err := Insert(ctx, tx, `
		INSERT INTO surehook_dedup_reapplies (scope, event_id, object_type, object_id, marked_from, marked_until, asked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		r.Scope, r.ID, r.Object.Type, r.Object.ID, orNull(r.From), orNull(r.Until), r.At.UnixMicro())
	return number, dedup.WrapError(ctx, "asking for events to be applied again", err)
}

// ListReapplies is of [dedup.Reapplies].
func ListReapplies(ctx context.Context, tx *sql.Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	if err := dedup.CheckListReapplies(scope, after, limit); err != nil {
		return nil, err
	}
	if tx == nil {
		return nil, ErrNoTx
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

// CancelReapply is of [dedup.Reapplies].
func CancelReapply(ctx context.Context, tx *sql.Tx, scope string, number int64) error {
	if err := dedup.CheckReapplyNumber(scope, number); err != nil {
		return err
	}
	n, err := Exec(ctx, tx, `DELETE FROM surehook_dedup_reapplies WHERE scope = ? AND number = ?`, scope, number)
	if err == nil && n == 0 {
		return dedup.ErrNotFound
	}
	return dedup.WrapError(ctx, "cancelling a request to apply again", err)
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
