package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Store is a [dedup.Store], [dedup.DeadLetters] and [dedup.Reapplies] for the transactions
// of a *sql.DB. It is safe for concurrent use and holds nothing.
//
// That includes prepared statements: a *sql.Stmt belongs to one *sql.DB and keeps
// its connections' copies for as long as it lives, and all that a Store is ever
// given is a transaction. SQLite compiles a statement of this size in microseconds,
// which a commit that waits for the disk hides.
type Store struct{}

var (
	_ dedup.Store[*sql.Tx]       = (*Store)(nil)
	_ dedup.DeadLetters[*sql.Tx] = (*Store)(nil)
	_ dedup.Reapplies[*sql.Tx]   = (*Store)(nil)
)

// New returns a store. The tables must be there: see [Migrate].
func New() *Store { return &Store{} }

// Mark implements [dedup.Store]. As the first statement of a transaction it takes
// the write lock, so a transaction that begins with it never finds its snapshot
// too old.
func (*Store) Mark(ctx context.Context, tx *sql.Tx, scope, id string, at time.Time) (bool, error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx, `
		INSERT INTO surehook_dedup_markers (scope, id, marked_at) VALUES (?, ?, ?)
		ON CONFLICT (scope, id) DO NOTHING`,
		scope, id, at.UnixMicro())
	if err != nil {
		return false, dedup.WrapError(ctx, "marking an event", err)
	}
	return n == 1, nil
}

// Advance implements [dedup.Store].
func (*Store) Advance(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := exec(ctx, tx, `
		INSERT INTO surehook_dedup_versions AS v (scope, object_type, object_id, version) VALUES (?, ?, ?, ?)
		ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
		WHERE excluded.version > v.version`,
		scope, obj.Type, obj.ID, version)
	if err != nil {
		return false, dedup.WrapError(ctx, "advancing a version", err)
	}
	return n == 1, nil
}

// Version implements [dedup.Store].
func (*Store) Version(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object) (int64, error) {
	if err := dedup.CheckObject(scope, obj); err != nil {
		return 0, err
	}
	if tx == nil {
		return 0, errNoTx
	}
	// An aggregate always has a row, so that none need not be told from an error.
	var version int64
	err := tx.QueryRowContext(ctx, `
		SELECT coalesce(max(version), 0) FROM surehook_dedup_versions
		WHERE scope = ? AND object_type = ? AND object_id = ?`,
		scope, obj.Type, obj.ID).Scan(&version)
	return version, dedup.WrapError(ctx, "reading a version", err)
}

const pruneQuery = `
	DELETE FROM surehook_dedup_markers WHERE (scope, id) IN (
		SELECT scope, id FROM surehook_dedup_markers
		WHERE marked_at < ? ORDER BY marked_at LIMIT ?)`

const pruneReapplies = `
	DELETE FROM surehook_dedup_reapplies WHERE number IN (
		SELECT number FROM surehook_dedup_reapplies
		WHERE asked_at < ? ORDER BY number LIMIT ?)`

// Prune implements [dedup.Store].
func (*Store) Prune(ctx context.Context, tx *sql.Tx, before time.Time, limit int) (int, error) {
	if err := dedup.CheckLimit(limit); err != nil {
		return 0, err
	}
	n, err := exec(ctx, tx, pruneQuery, before.UnixMicro(), limit)
	if err == nil && n < int64(limit) { // no marker is left that older requests could cover
		_, err = exec(ctx, tx, pruneReapplies, before.UnixMicro(), limit)
	}
	if err != nil {
		return 0, dedup.WrapError(ctx, "pruning markers", err)
	}
	return int(n), nil
}

var errNoTx = fmt.Errorf("%w: the transaction is nil", dedup.ErrInvalid)

// exec returns how many rows were changed.
func exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	if tx == nil {
		return 0, errNoTx
	}
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
