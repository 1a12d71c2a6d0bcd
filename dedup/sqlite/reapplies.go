package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/internal/sqlstore"
)

// AskReapply implements [dedup.Reapplies].
func (s *Store) AskReapply(ctx context.Context, tx *sql.Tx, r dedup.Reapply) (int64, error) {
	number, err := sqlstore.AskReapply(ctx, tx, r)
	return number, s.files.Kept(ctx, tx, err)
}

// ListReapplies implements [dedup.Reapplies].
func (*Store) ListReapplies(ctx context.Context, tx *sql.Tx, scope string, after int64, limit int) ([]dedup.Reapply, error) {
	return sqlstore.ListReapplies(ctx, tx, scope, after, limit)
}

// CancelReapply implements [dedup.Reapplies].
func (s *Store) CancelReapply(ctx context.Context, tx *sql.Tx, scope string, number int64) error {
	return s.files.Kept(ctx, tx, sqlstore.CancelReapply(ctx, tx, scope, number))
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
func (s *Store) TakeReapply(ctx context.Context, tx *sql.Tx, scope, id string, obj dedup.Object) (bool, error) {
	if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, takeReapply, obj.Type, obj.ID, scope, id, obj.Type, obj.ID)
	if err != nil {
		return false, dedup.WrapError(ctx, "looking for a request to apply an event again", err)
	}
	return n == 1, nil
}

// AdvanceAgain implements [dedup.Reapplies].
func (s *Store) AdvanceAgain(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, `
		INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version) VALUES (?, ?, ?, ?)
		ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
		WHERE excluded.version >= v.version`,
		scope, obj.Type, obj.ID, version)
	if err != nil {
		return false, dedup.WrapError(ctx, "advancing a version again", err)
	}
	return n == 1, nil
}
