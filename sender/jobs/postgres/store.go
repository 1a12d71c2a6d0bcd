package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/pgfit"
	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/pgrun"
	"github.com/surehook/surehook/sender/jobs"
)

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Schema has the tables. All statements name it, so the search_path of a
	// transaction does not matter. Empty: the statements name no schema, and the
	// search_path decides.
	Schema string
}

// Store is a jobs.Store in a PostgreSQL database, for transactions of type Tx. It is
// safe for concurrent use, by any number of processes.
type Store[Tx any] struct {
	pool   *pgxpool.Pool
	schema string
	clock  string // the SQL expression for the database's time
	text   texts
	in     func(tx Tx) pgtx.Tx
	run    func(ctx context.Context, fn func(tx Tx) error) error
}

var (
	_ jobs.Store[pgx.Tx]  = (*Store[pgx.Tx])(nil)
	_ jobs.Store[*sql.Tx] = (*Store[*sql.Tx])(nil)
)

// New returns a store for applications that use pgx. The tables must be there before
// it is used: see [Store.Migrate].
func New(pool *pgxpool.Pool, cfg *Config) (*Store[pgx.Tx], error) {
	return newStore("New", pool, cfg, pgtx.Pgx, pgtx.InTx(pool, pgx.TxOptions{}))
}

// NewSQL returns a store that works in transactions of database/sql, with any driver.
// Its own transactions are on a pool of pgx, to the same database.
func NewSQL(pool *pgxpool.Pool, cfg *Config) (*Store[*sql.Tx], error) {
	return newStore("NewSQL", pool, cfg, pgtx.SQL, func(ctx context.Context, fn func(tx *sql.Tx) error) error {
		return pgrun.SQL(ctx, pool, fn)
	})
}

func newStore[Tx any](name string, pool *pgxpool.Pool, cfg *Config, in func(tx Tx) pgtx.Tx,
	run func(ctx context.Context, fn func(tx Tx) error) error,
) (*Store[Tx], error) {
	s := &Store[Tx]{pool: pool, in: in, run: run}
	if cfg != nil {
		s.schema = cfg.Schema
	}
	var errs []error
	if pool == nil {
		errs = append(errs, fmt.Errorf("postgres: %s needs a *pgxpool.Pool", name))
	}
	if err := ident.Schema(s.schema); err != nil {
		errs = append(errs, fmt.Errorf("postgres: Schema %q: %w", s.schema, err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.setClock("clock_timestamp()")
	return s, nil
}

// setClock makes the statements as they are sent: with the schema in front of the
// tables, and the database's clock for {now}.
func (s *Store[Tx]) setClock(clock string) {
	s.clock = clock
	s.text = newTexts(s.sent)
}

func (s *Store[Tx]) sent(query string) string {
	return strings.ReplaceAll(pgtx.InSchema(s.schema, query), "{now}", s.clock)
}

// Check implements jobs.Store.
func (s *Store[Tx]) Check(ctx context.Context) error {
	unfit, err := pgfit.Check(func(query string, to ...any) error { return s.pool.QueryRow(ctx, query).Scan(to...) })
	if err != nil {
		return fail("reading the server's settings", err)
	}
	if unfit != nil {
		return fmt.Errorf("%w: %w", sender.ErrUnfit, unfit)
	}
	l, err := migrate.ReadPostgres(s.sent("surehook_migrations"), migrationSet, func(query string, args ...any) migrate.Row {
		return s.pool.QueryRow(ctx, s.sent(query), args...)
	})
	if err != nil {
		return fail("reading the ledger", err)
	}
	if err := l.Fits(Migrations()); err != nil {
		return fmt.Errorf("%w: %s: %w", sender.ErrUnfit, migrationSet, err)
	}
	return nil
}
