package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/surehook/surehook/sender"
)

// migrated names something that each migration makes, by which it is seen, or a column
// of it: those who migrate with a tool of their own have no ledger of ours.
var migrated = [...]string{"surehook_rollups"}

const selectMade = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)
	AND (?2 = '' OR EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2))`

// Check implements sender.DispatchStore.
func (s *Store) Check(ctx context.Context) error {
	if err := s.read(ctx, func(w *work) error {
		for i, name := range migrated {
			var there bool
			table, column, _ := strings.Cut(name, ".")
			if err := w.row(selectMade, table, column).Scan(&there); err != nil {
				return fail("looking for the tables", err)
			}
			if !there {
				return fmt.Errorf("%w: migration %03d is missing (there is no %s): call Migrate before", sender.ErrUnfit, i+1, name)
			}
		}
		var mode string
		if err := w.row(`PRAGMA journal_mode`).Scan(&mode); err != nil {
			return fail("reading the journal mode", err)
		}
		if !strings.EqualFold(mode, "wal") {
			return fmt.Errorf("%w: its journal_mode is %s: set PRAGMA journal_mode = wal", sender.ErrUnfit, mode)
		}
		return w.durable()
	}); err != nil {
		return err
	}
	_, err := s.prepare(ctx)
	return fail("preparing statements", err)
}

// synchronousFull is what a WAL needs to keep a commit through a loss of power
// (sqlite.org/pragma.html#pragma_synchronous).
const synchronousFull = 2

// durable returns an error unless what the connection commits is durable. The
// setting is each connection's own, so it is looked at in every transaction that
// writes. Prepared, the statement would go on giving its first answer.
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
