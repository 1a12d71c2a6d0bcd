package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/inside"
	"github.com/surehook/surehook/sender/jobs"
)

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Now is the clock by which jobs become due and leases end. All processes on
	// one database must agree on it; they run on one machine. The default is
	// time.Now.
	Now func() time.Time
}

// Store is a jobs.Store in an SQLite database. It is safe for concurrent use, by any
// number of processes on one machine.
type Store struct {
	db      *sql.DB
	file    sqlitetx.File
	clock   func() time.Time
	writing *semaphore.Weighted // first come, first served
	calls   inside.Calls
}

var (
	_ jobs.Store[*sql.Tx]    = (*Store)(nil)
	_ sender.Reader[*sql.Tx] = (*Store)(nil)
	_ jobs.Looker            = (*Store)(nil)
)

// New returns a store in db. The tables must be there before it is used: see
// [Store.Migrate].
func New(db *sql.DB, cfg *Config) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlite: New needs a *sql.DB")
	}
	s := &Store{db: db, clock: time.Now, writing: semaphore.NewWeighted(1)}
	if cfg != nil && cfg.Now != nil {
		s.clock = cfg.Now
	}
	return s, nil
}

// now is in microseconds since 1970, like all times in the tables.
func (s *Store) now() int64 { return s.clock().UnixMicro() }

// Check implements jobs.Store.
func (s *Store) Check(ctx context.Context) error {
	return s.InReadTx(ctx, func(tx *sql.Tx) error { return s.check(ctx, tx) })
}

func (s *Store) check(ctx context.Context, tx *sql.Tx) error {
	l, err := migrate.ReadSQLite(migrationSet, func(query string, args ...any) migrate.Row { return tx.QueryRowContext(ctx, query, args...) })
	if err != nil {
		return fail("reading the ledger", err)
	}
	if err := l.Fits(Migrations()); err != nil {
		return fmt.Errorf("%w: %s: %w", sender.ErrUnfit, migrationSet, err)
	}
	var mode string
	if err := tx.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return fail("reading the journal mode", err)
	}
	if !strings.EqualFold(mode, "wal") {
		return fmt.Errorf("%w: its journal_mode is %s: set PRAGMA journal_mode = wal", sender.ErrUnfit, mode)
	}
	return s.keeps(ctx, tx)
}

// keeps returns an error unless what is committed stays.
func (s *Store) keeps(ctx context.Context, tx *sql.Tx) error {
	if err := s.file.Moved(ctx, tx); err != nil {
		return fmt.Errorf("%w: %w", sender.ErrUnfit, err)
	}
	return durable(ctx, tx)
}

// synchronousFull is the value with which a WAL keeps commits through a loss of power
// (sqlite.org/pragma.html#pragma_synchronous).
const synchronousFull = 2

// durable returns an error unless the connection's commits are durable. Each connection
// has its own setting.
func durable(ctx context.Context, tx *sql.Tx) error {
	var level int
	if err := tx.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&level); err != nil {
		return fail("reading PRAGMA synchronous", err)
	}
	if level < synchronousFull {
		return fmt.Errorf("%w: PRAGMA synchronous is %d on a connection: set it to full (2) on every one, in the DSN: a commit could be lost with the power", sender.ErrUnfit, level)
	}
	return nil
}

// micros of the zero time are 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
