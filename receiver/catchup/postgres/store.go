// Package postgres keeps the cursors of package catchup in a PostgreSQL database, for
// pgx and for any driver of database/sql.
package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/receiver/catchup"
)

// Config of a store, and of [Migrate] or [MigratePool], which must be given the same.
type Config struct {
	// Schema is the table's schema, up to 63 bytes. Its case is kept. If it is empty,
	// each transaction's search_path decides.
	Schema string
}

// Store is a [catchup.CursorStore] for the transactions of pgx or of a *sql.DB. It is
// safe for concurrent use and holds nothing but its statements' text.
type Store[Tx any] struct {
	get, set string
	within   string           // empty: not needed
	in       func(Tx) pgtx.Tx // nil for nil
}

var (
	_ catchup.CursorStore[pgx.Tx]  = (*Store[pgx.Tx])(nil)
	_ catchup.CursorStore[*sql.Tx] = (*Store[*sql.Tx])(nil)
)

// New returns a store for the transactions of pgx. The table must be there: see
// [Migrate]. A nil config is an empty one; the error matches [catchup.ErrInvalid].
func New(cfg *Config) (*Store[pgx.Tx], error) {
	return newStore(cfg, pgtx.Pgx)
}

// NewSQL is New for the transactions of a *sql.DB of any driver. The InTxSQL of dedup/postgres
// runs them.
func NewSQL(cfg *Config) (*Store[*sql.Tx], error) {
	s, err := newStore(cfg, pgtx.SQL)
	if err == nil {
		s.within = pgtx.InSchema(cfg.schema(), within)
	}
	return s, err
}

var errNoTx = fmt.Errorf("%w: the transaction is nil", catchup.ErrInvalid)

const (
	get = `SELECT cursor FROM surehook_catchup_cursors WHERE name = $1`
	// Unlike a marker, it does not make the commit durable: after a loss the feed is read
	// again from an older cursor.
	set = `INSERT INTO surehook_catchup_cursors (name, cursor) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, moved_at = excluded.moved_at`
	// within fails outside of a transaction, and takes the lock that set takes anyway. Only pgx
	// and its driver know without a trip that a function has ended the transaction by a
	// statement: with others the cursor would stand behind an effect that is gone.
	within = `LOCK TABLE surehook_catchup_cursors IN ROW EXCLUSIVE MODE`
)

func newStore[Tx any](cfg *Config, in func(Tx) pgtx.Tx) (*Store[Tx], error) {
	schema := cfg.schema()
	if err := ident.Schema(schema); err != nil {
		return nil, fmt.Errorf("%w: %w", catchup.ErrInvalid, err)
	}
	return &Store[Tx]{get: pgtx.InSchema(schema, get), set: pgtx.InSchema(schema, set), in: in}, nil
}

func (c *Config) schema() string {
	if c == nil {
		return ""
	}
	return c.Schema
}

func (s *Store[Tx]) session(tx Tx) (pgtx.Tx, error) {
	if in := s.in(tx); in != nil {
		return in, nil
	}
	return nil, errNoTx
}

// Cursor implements [catchup.CursorStore].
func (s *Store[Tx]) Cursor(ctx context.Context, tx Tx, name string) (cursor string, err error) {
	in, err := s.session(tx)
	if err = errors.Join(err, catchup.CheckName(name)); err != nil {
		return "", err
	}
	err = in.Row(ctx, s.get, []any{name}, &cursor)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("postgres: reading a cursor: %w", dberr.Unmigrated("surehook_catchup_", err))
	}
	return cursor, nil
}

// SetCursor implements [catchup.CursorStore].
func (s *Store[Tx]) SetCursor(ctx context.Context, tx Tx, name, cursor string) error {
	in, err := s.session(tx)
	if err = errors.Join(err, catchup.CheckName(name), catchup.CheckCursor(cursor)); err != nil {
		return err
	}
	if s.within != "" {
		_, err = in.Exec(ctx, s.within)
		err = pgtx.EndedIf(err)
	}
	if err == nil {
		_, err = in.Exec(ctx, s.set, name, cursor)
	}
	if err != nil {
		return fmt.Errorf("postgres: storing a cursor: %w", dberr.Unmigrated("surehook_catchup_", err))
	}
	return nil
}

//go:embed migrations/*.sql
var files embed.FS

// Migrate brings the table up to date, and makes the schema of the config if it is
// not there. Call it before the first use, at every start: when nothing is to be done
// it writes nothing and takes no lock. Several processes may call it at once. A nil
// config is an empty one.
//
// Tables that a newer release has migrated are left as they are. It is an error if they
// say that this release cannot work with them.
func Migrate(ctx context.Context, db *sql.DB, cfg *Config) error {
	return migrate.Postgres(ctx, db, cfg.schema(), "catchup", Migrations())
}

// MigratePool is [Migrate] with a connection of a pool of pgx.
func MigratePool(ctx context.Context, pool *pgxpool.Pool, cfg *Config) error {
	return pgtx.WithSQL(pool, func(db *sql.DB) error { return Migrate(ctx, db, cfg) })
}

// Migrations returns the numbered files that Migrate applies, for those who have a tool of
// their own. Their names are unqualified. They only ever go forward, and a released one
// never changes. They record themselves in surehook_migrations.
func Migrations() fs.FS {
	return migrate.Files(files)
}
