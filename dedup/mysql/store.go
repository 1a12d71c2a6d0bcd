package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/internal/sqlstore"
)

// Store is a [dedup.Store], [dedup.DeadLetters] and [dedup.Reapplies] for the transactions
// of a *sql.DB. It is safe for concurrent use and holds nothing.
type Store struct{}

var (
	_ dedup.Store[*sql.Tx]       = (*Store)(nil)
	_ dedup.DeadLetters[*sql.Tx] = (*Store)(nil)
	_ dedup.Reapplies[*sql.Tx]   = (*Store)(nil)
)

// New returns a store. The tables must be there: see [Migrate].
func New() *Store { return &Store{} }

// The number of affected rows does not tell an inserted row from one that stayed as it
// was: a connection with CLIENT_FOUND_ROWS has 1 for both. INSERT IGNORE would tell, but
// it makes warnings of other errors. So these statements tell by LAST_INSERT_ID(x), which
// the server returns with its answer. It is 0 if no row was there, since it is not
// evaluated then. x has a column in it, so that no server takes it for a constant, which
// it might evaluate before.
const (
	mark = `
INSERT INTO surehook_dedup_markers (scope, id, marked_at) VALUES (?, ?, ?)
ON DUPLICATE KEY UPDATE reapplied = reapplied + 0 * LAST_INSERT_ID(LENGTH(id))`

	// x is 1 if the stored version stays because the new one is not higher.
	advance = `
INSERT INTO surehook_dedup_versions (scope, object_type, object_id, version) VALUES (?, ?, ?, ?)
ON DUPLICATE KEY UPDATE version = GREATEST(version, ? + 0 * LAST_INSERT_ID(version >= ?))`

	advanceAgain = `
INSERT INTO surehook_dedup_versions (scope, object_type, object_id, version) VALUES (?, ?, ?, ?)
ON DUPLICATE KEY UPDATE version = GREATEST(version, ? + 0 * LAST_INSERT_ID(version > ?))`
)

// Mark implements [dedup.Store].
func (*Store) Mark(ctx context.Context, tx *sql.Tx, scope, id string, at time.Time) (bool, error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, err
	}
	there, err := sqlstore.Insert(ctx, tx, mark, scope, id, at.UnixMicro())
	if err != nil {
		return false, dedup.WrapError(ctx, "marking an event", err)
	}
	return there == 0, nil
}

// Advance implements [dedup.Store].
func (*Store) Advance(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	newer, err := raise(ctx, tx, advance, scope, obj, version)
	return newer, dedup.WrapError(ctx, "advancing a version", err)
}

// raise runs advance or advanceAgain.
func raise(ctx context.Context, tx *sql.Tx, query, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	stays, err := sqlstore.Insert(ctx, tx, query, scope, obj.Type, obj.ID, version, version, version)
	if err != nil || stays == 0 {
		return err == nil, err
	}
	// Under REPEATABLE READ the statement saw what is committed by now, and the
	// transaction's reads see what was committed before it.
	seen, err := sqlstore.Version(ctx, tx, scope, obj)
	if err == nil && seen < version {
		err = fmt.Errorf("%w: the stored version is younger than the transaction's snapshot", dedup.ErrRetryTx)
	}
	return false, err
}

// Version implements [dedup.Store].
func (*Store) Version(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object) (int64, error) {
	return sqlstore.Version(ctx, tx, scope, obj)
}

// Prune implements [dedup.Store]. It waits for a transaction that is removing the same
// markers.
func (*Store) Prune(ctx context.Context, tx *sql.Tx, before time.Time, limit int) (int, error) {
	if err := dedup.CheckLimit(limit); err != nil {
		return 0, err
	}
	n, err := sqlstore.Exec(ctx, tx, `DELETE FROM surehook_dedup_markers WHERE marked_at < ? ORDER BY marked_at LIMIT ?`, before.UnixMicro(), limit)
	if err == nil && n < int64(limit) { // no marker is left that older requests could cover
		_, err = sqlstore.Exec(ctx, tx, `DELETE FROM surehook_dedup_reapplies WHERE asked_at < ? ORDER BY number LIMIT ?`, before.UnixMicro(), limit)
	}
	if err != nil {
		return 0, dedup.WrapError(ctx, "pruning markers", err)
	}
	return int(n), nil
}
