package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/internal/sqlstore"
	"github.com/surehook/surehook/internal/sqlitetx"
)

// Store is a [dedup.Store], [dedup.DeadLetters] and [dedup.Reapplies] for the transactions
// of a *sql.DB. It is safe for concurrent use. Make one for a *sql.DB: it knows which file
// was there first, and writes nothing while that is not in its place.
//
// It holds no prepared statements: a *sql.Stmt belongs to one *sql.DB and keeps its
// connections' copies for as long as it lives. A Store is given transactions only. SQLite
// compiles a statement of this size in microseconds, which a commit that waits for the
// disk hides.
type Store struct{ files sqlitetx.Files }

var (
	_ dedup.Store[*sql.Tx]       = (*Store)(nil)
	_ dedup.DeadLetters[*sql.Tx] = (*Store)(nil)
	_ dedup.Reapplies[*sql.Tx]   = (*Store)(nil)
)

// New returns a store. The tables must be there: see [Migrate].
func New() *Store { return &Store{} }

// exec returns how many rows a statement that writes has changed.
func (s *Store) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	n, err := sqlstore.Exec(ctx, tx, query, args...)
	return n, s.files.Kept(ctx, tx, err)
}

// Mark implements [dedup.Store]. As the first statement of a transaction it takes
// the write lock, so a transaction that begins with it never finds its snapshot
// too old.
func (s *Store) Mark(ctx context.Context, tx *sql.Tx, scope, id string, at time.Time) (bool, error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, `
		INSERT INTO surehook_dedup_markers (scope, id, marked_at) VALUES (?, ?, ?)
		ON CONFLICT (scope, id) DO NOTHING`,
		scope, id, at.UnixMicro())
	if err != nil {
		return false, dedup.WrapError(ctx, "marking an event", err)
	}
	return n == 1, nil
}

// Advance implements [dedup.Store].
func (s *Store) Advance(ctx context.Context, tx *sql.Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, `
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
	return sqlstore.Version(ctx, tx, scope, obj)
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
func (s *Store) Prune(ctx context.Context, tx *sql.Tx, before time.Time, limit int) (int, error) {
	if err := dedup.CheckLimit(limit); err != nil {
		return 0, err
	}
	n, err := s.exec(ctx, tx, pruneQuery, before.UnixMicro(), limit)
	if err == nil && n < int64(limit) { // no marker is left that older requests could cover
		_, err = s.exec(ctx, tx, pruneReapplies, before.UnixMicro(), limit)
	}
	if err != nil {
		return 0, dedup.WrapError(ctx, "pruning markers", err)
	}
	return int(n), nil
}
