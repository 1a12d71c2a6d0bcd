// Package sqlstore has what dedup/sqlite and dedup/mysql have in common: methods of their
// stores whose statements both databases take in the same words. Times are kept in
// microseconds since 1970, UTC.
package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/surehook/surehook/dedup"
)

// ErrNoTx says that the transaction is nil.
var ErrNoTx = fmt.Errorf("%w: the transaction is nil", dedup.ErrInvalid)

func run(ctx context.Context, tx *sql.Tx, query string, args ...any) (sql.Result, error) {
	if tx == nil {
		return nil, ErrNoTx
	}
	return tx.ExecContext(ctx, query, args...)
}

// Exec returns how many rows a statement has changed.
func Exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	res, err := run(ctx, tx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Insert returns the id that the database gives with its answer.
func Insert(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	res, err := run(ctx, tx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Version is of [dedup.Store].
func Version(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object) (int64, error) {
	if err := dedup.CheckObject(scope, obj); err != nil {
		return 0, err
	}
	if tx == nil {
		return 0, ErrNoTx
	}
	// An aggregate always has a row, so that none need not be told from an error.
	var version int64
	err := tx.QueryRowContext(ctx, `
		SELECT coalesce(max(version), 0) FROM surehook_dedup_versions
		WHERE scope = ? AND object_type = ? AND object_id = ?`,
		scope, obj.Type, obj.ID).Scan(&version)
	return version, dedup.WrapError(ctx, "reading a version", err)
}
