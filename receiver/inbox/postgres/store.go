// Package postgres keeps the events of package inbox in a PostgreSQL database, for
// pgx and for any driver of database/sql.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/fence"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/receiver/inbox"
)

// Config of a store, and of [Migrate] or [MigratePool], which must be given the same.
type Config struct {
	// Schema is the tables' schema, up to 63 bytes. Its case is kept. If it is empty,
	// each transaction's search_path decides. The inboxes of several receivers may share
	// the tables.
	Schema string
}

// Store is an [inbox.Store] for the transactions of pgx or of a *sql.DB. It is safe
// for concurrent use and holds nothing but its statements' text.
//
// It is made for READ COMMITTED, where one waits for another. Under stricter levels
// some transactions fail and are run again.
type Store[Tx any] struct {
	sql statements
	in  func(Tx) pgtx.Tx
}

var (
	_ inbox.Store[pgx.Tx]  = (*Store[pgx.Tx])(nil)
	_ inbox.Store[*sql.Tx] = (*Store[*sql.Tx])(nil)
)

// New returns a store for the transactions of pgx. The tables must be there: see
// [Migrate]. A nil config is an empty one; the error matches [inbox.ErrInvalid].
func New(cfg *Config) (*Store[pgx.Tx], error) { return newStore(cfg, pgtx.Pgx) }

// NewSQL is New for the transactions of a *sql.DB of any driver. The InTxSQL of dedup/postgres
// runs them.
func NewSQL(cfg *Config) (*Store[*sql.Tx], error) { return newStore(cfg, pgtx.SQL) }

func newStore[Tx any](cfg *Config, in func(Tx) pgtx.Tx) (*Store[Tx], error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := ident.Schema(cfg.Schema); err != nil {
		return nil, fmt.Errorf("%w: %w", inbox.ErrInvalid, err)
	}
	return &Store[Tx]{sql: statementsIn(cfg.Schema), in: in}, nil
}

// RecordTx implements [inbox.Store].
func (s *Store[Tx]) RecordTx(ctx context.Context, tx Tx, r inbox.Record) (fresh bool, err error) {
	in, err := s.session(tx)
	if err = errors.Join(err, inbox.CheckRecord(r)); err != nil {
		return false, err
	}
	err = in.Row(ctx, s.sql.record, []any{r.Scope, r.ID, r.Line, r.Type, r.Version, r.Body, r.OneScope}, &fresh)
	return fresh && err == nil, wrap("recording an event", err)
}

// ClaimTx implements [inbox.Store].
func (s *Store[Tx]) ClaimTx(ctx context.Context, tx Tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	in, err := s.session(tx)
	if err = errors.Join(err, inbox.CheckClaim(limit, lease)); err != nil {
		return nil, err
	}
	var claims []inbox.Claim
	token := fence.Token()
	query, args := s.sql.claimAllLines, []any{limit, lease.Microseconds(), token}
	if scope != "" {
		query, args = s.sql.claimScopeLines, append(args, scope)
	}
	err = in.Rows(ctx, query, args, func(row pgtx.Row) error {
		c := inbox.Claim{Token: token}
		defer func() { claims = append(claims, c) }()
		return row.Scan(&c.Scope, &c.Line, &c.OneScope)
	})
	if err != nil {
		return nil, wrap("claiming lines", err)
	}
	kept := claims[:0]
	for _, c := range claims {
		var age int64
		// A statement of its own has a snapshot younger than the line's lock: it sees all
		// that was committed to the line before.
		err := in.Row(ctx, s.sql.claimEvent, []any{c.Scope, c.Line}, &c.ID, &c.Type, &c.Version, &c.Body, &c.Attempt, &age)
		if errors.Is(err, sql.ErrNoRows) { // somebody has removed events by hand
			if _, err = in.Exec(ctx, s.sql.removeLine, c.Scope, c.Line); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, wrap("claiming an event", err)
		}
		c.Age = time.Duration(max(age, 0)) * time.Microsecond
		kept = append(kept, c)
	}
	return kept, nil
}

// FinishTx implements [inbox.Store].
func (s *Store[Tx]) FinishTx(ctx context.Context, tx Tx, c inbox.Claim) error {
	in, err := s.held(ctx, tx, c, 0)
	if err == nil {
		err = s.removeEvent(ctx, in, c)
	}
	if err == nil {
		// The line is locked: a concurrent RecordTx waits, and makes the line again.
		_, err = in.Exec(ctx, s.sql.removeLine, c.Scope, c.Line)
	}
	return wrap("removing an event", err)
}

func (s *Store[Tx]) removeEvent(ctx context.Context, in pgtx.Tx, c inbox.Claim) error {
	n, err := in.Exec(ctx, s.sql.removeEvent, c.Scope, c.ID)
	if err != nil || n > 0 {
		return err
	}
	var begun bool // if so, somebody has removed the event by hand
	if err = in.Row(ctx, s.sql.begun, nil, &begun); err == nil && !begun {
		return pgtx.ErrEnded
	}
	return err
}

// RetryTx implements [inbox.Store].
func (s *Store[Tx]) RetryTx(ctx context.Context, tx Tx, c inbox.Claim, after time.Duration, reason string) error {
	in, err := s.held(ctx, tx, c, after)
	if err == nil {
		_, err = in.Exec(ctx, s.sql.putBack, c.Scope, c.ID, reason)
	}
	return wrap("putting an event back", err)
}

// StatusTx implements [inbox.Store].
func (s *Store[Tx]) StatusTx(ctx context.Context, tx Tx, scope string) (status inbox.Status, err error) {
	in, err := s.session(tx)
	if err != nil {
		return status, err
	}
	var oldest sql.NullInt64
	query, args := s.sql.status, []any{}
	if scope != "" {
		query, args = s.sql.scopeStatus, append(args, scope)
	}
	err = in.Row(ctx, query, args, &status.Events, &status.Failing, &status.Ahead, &oldest)
	if oldest.Valid {
		status.Oldest = time.UnixMicro(oldest.Int64).UTC()
	}
	return status, wrap("counting events", err)
}

// OverdueTx implements [inbox.Store].
func (s *Store[Tx]) OverdueTx(ctx context.Context, tx Tx, scope string, longer time.Duration) (o inbox.Overdue, err error) {
	in, err := s.session(tx)
	if err == nil {
		err = in.Row(ctx, s.sql.overdue, []any{scope, longer.Microseconds()}, &o.Events, &o.Scope)
	}
	return o, wrap("counting overdue events", err)
}

// held ends a claim by making its line due after a while, or returns
// inbox.ErrLeaseLost.
func (s *Store[Tx]) held(ctx context.Context, tx Tx, c inbox.Claim, after time.Duration) (pgtx.Tx, error) {
	in, err := s.session(tx)
	if err != nil {
		return nil, err
	}
	n, err := in.Exec(ctx, s.sql.release, c.Scope, c.Line, c.Token, after.Microseconds())
	if err == nil && n == 0 {
		err = inbox.ErrLeaseLost
	}
	return in, err
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("postgres: %s: %w", doing, dberr.Unmigrated("surehook_inbox_", err))
}
