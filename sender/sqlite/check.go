package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/sender"
)

// Check implements dispatch.Store.
func (s *Store) Check(ctx context.Context) error {
	if err := s.read(ctx, func(w *work) error {
		l, err := migrate.ReadSQLite(migrationSet, func(query string, args ...any) migrate.Row { return w.row(query, args...) })
		if err != nil {
			return fail("reading the ledger", err)
		}
		if err := l.Fits(Migrations()); err != nil {
			return fmt.Errorf("%w: %s: %w", sender.ErrUnfit, migrationSet, err)
		}
		var mode string
		if err := w.row(`PRAGMA journal_mode`).Scan(&mode); err != nil {
			return fail("reading the journal mode", err)
		}
		if !strings.EqualFold(mode, "wal") {
			return fmt.Errorf("%w: its journal_mode is %s: set PRAGMA journal_mode = wal", sender.ErrUnfit, mode)
		}
		return s.keeps(w)
	}); err != nil {
		return err
	}
	_, err := s.prepare(ctx)
	return fail("preparing statements", err)
}

// synchronousFull is the least setting with which a WAL keeps a commit through a loss of
// power (sqlite.org/pragma.html#pragma_synchronous).
const synchronousFull = 2

// keeps returns an error unless what is committed stays.
func (s *Store) keeps(w *work) error {
	if err := s.file.Moved(w.ctx, w.on); err != nil {
		return fmt.Errorf("%w: %w", sender.ErrUnfit, err)
	}
	return w.durable()
}

// durable returns an error unless the connection's commits are durable. Each connection
// has a setting of its own, so every transaction that writes looks at it. The statement
// is not prepared: a prepared one would repeat its first answer.
func (w *work) durable() error {
	var level int
	if err := w.on.QueryRowContext(w.ctx, `PRAGMA synchronous`).Scan(&level); err != nil {
		return fail("reading PRAGMA synchronous", err)
	}
	if level < synchronousFull {
		return fmt.Errorf("%w: PRAGMA synchronous is %d on a connection: set it to full (2) on every one, in the DSN: a commit could be lost with the power", sender.ErrUnfit, level)
	}
	return nil
}
