package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/internal/sqlstore"
)

// SetAside implements [dedup.DeadLetters].
func (s *Store) SetAside(ctx context.Context, tx *sql.Tx, letter dedup.DeadLetter) error {
	return s.files.Kept(ctx, tx, sqlstore.SetAside(ctx, tx, letter))
}

// DeadLetter implements [dedup.DeadLetters].
func (*Store) DeadLetter(ctx context.Context, tx *sql.Tx, scope, id string) (dedup.DeadLetter, error) {
	return sqlstore.DeadLetter(ctx, tx, scope, id)
}

// ListDeadLetters implements [dedup.DeadLetters].
func (*Store) ListDeadLetters(ctx context.Context, tx *sql.Tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
	return sqlstore.ListDeadLetters(ctx, tx, scope, after, limit)
}

// Discard implements [dedup.DeadLetters].
func (s *Store) Discard(ctx context.Context, tx *sql.Tx, scope, id string) error {
	return s.files.Kept(ctx, tx, sqlstore.Discard(ctx, tx, scope, id))
}
