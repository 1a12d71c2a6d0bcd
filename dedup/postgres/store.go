package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pgtx"
)

// Config of a store, and of [Migrate] or [MigratePool], which must be given the same.
type Config struct {
	// Schema is the tables' schema, up to 63 bytes. Its case is kept. If it is empty,
	// each transaction's search_path decides.
	Schema string
}

// Store is a [dedup.Store], [dedup.DeadLetters] and [dedup.Reapplies] for the
// transactions of pgx or of a *sql.DB. It is safe for concurrent use and holds nothing but
// its statements' text.
type Store[Tx any] struct {
	sql statements
	in  func(Tx) pgtx.Tx
}

var (
	_ dedup.Store[pgx.Tx]        = (*Store[pgx.Tx])(nil)
	_ dedup.DeadLetters[pgx.Tx]  = (*Store[pgx.Tx])(nil)
	_ dedup.Reapplies[pgx.Tx]    = (*Store[pgx.Tx])(nil)
	_ dedup.MarkAdvancer[pgx.Tx] = (*Store[pgx.Tx])(nil)
)

// New returns a store for the transactions of pgx. The tables must be there: see
// [Migrate]. A nil config is an empty one; the error matches [dedup.ErrInvalid].
func New(cfg *Config) (*Store[pgx.Tx], error) {
	return newStore(cfg, pgtx.Pgx)
}

// NewSQL is New for the transactions of a *sql.DB of any driver. [InTxSQL] runs them for a
// receiver.
func NewSQL(cfg *Config) (*Store[*sql.Tx], error) {
	return newStore(cfg, pgtx.SQL)
}

func newStore[Tx any](cfg *Config, in func(Tx) pgtx.Tx) (*Store[Tx], error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := ident.Schema(cfg.Schema); err != nil {
		return nil, fmt.Errorf("%w: %w", dedup.ErrInvalid, err)
	}
	return &Store[Tx]{sql: statementsIn(cfg.Schema), in: in}, nil
}

// Mark implements [dedup.Store].
func (s *Store[Tx]) Mark(ctx context.Context, tx Tx, scope, id string, at time.Time) (bool, error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, s.sql.mark, scope, id, micro(at))
	if err != nil {
		return false, dedup.WrapError(ctx, "marking an event", err)
	}
	return n == 1, nil
}

// Advance implements [dedup.Store].
func (s *Store[Tx]) Advance(ctx context.Context, tx Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, err
	}
	n, err := s.exec(ctx, tx, s.sql.advance, scope, obj.Type, obj.ID, version)
	if err != nil {
		return false, dedup.WrapError(ctx, "advancing a version", err)
	}
	return n == 1, nil
}

// MarkAndAdvance implements [dedup.MarkAdvancer].
func (s *Store[Tx]) MarkAndAdvance(ctx context.Context, tx Tx, scope, id string, at time.Time, obj dedup.Object, version int64) (fresh, newer bool, err error) {
	if err := dedup.CheckMark(scope, id, at); err != nil {
		return false, false, err
	}
	if err := dedup.CheckVersion(scope, obj, version); err != nil {
		return false, false, err
	}
	err = s.row(ctx, tx, s.sql.markAndAdvance,
		[]any{scope, id, micro(at), obj.Type, obj.ID, version}, &fresh, &newer)
	if err != nil {
		return false, false, dedup.WrapError(ctx, "marking an event and advancing its version", err)
	}
	return fresh, newer, nil
}

// Version implements [dedup.Store].
func (s *Store[Tx]) Version(ctx context.Context, tx Tx, scope string, obj dedup.Object) (int64, error) {
	if err := dedup.CheckObject(scope, obj); err != nil {
		return 0, err
	}
	var version int64
	if err := s.row(ctx, tx, s.sql.version, []any{scope, obj.Type, obj.ID}, &version); err != nil {
		return 0, dedup.WrapError(ctx, "reading a version", err)
	}
	return version, nil
}

// Prune implements [dedup.Store]. It waits for nobody: markers that another
// transaction is removing are passed over.
func (s *Store[Tx]) Prune(ctx context.Context, tx Tx, before time.Time, limit int) (int, error) {
	if err := dedup.CheckLimit(limit); err != nil {
		return 0, err
	}
	n, err := s.exec(ctx, tx, s.sql.prune, micro(before), limit)
	if err == nil && n < int64(limit) { // no marker is left that older requests could cover
		_, err = s.exec(ctx, tx, s.sql.pruneReapplies, micro(before), limit)
	}
	if err != nil {
		return 0, dedup.WrapError(ctx, "pruning markers", err)
	}
	return int(n), nil
}

// micro cuts a time to the database's microseconds: some drivers would round.
func micro(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }
