package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/damage"
	"github.com/surehook/surehook/sender/internal/inside"
)

const (
	// busyLimit is how long a transaction waits for other processes, and for writers of
	// this one that do not take turns, on top of the connection's own busy_timeout.
	busyLimit   = 15 * time.Second
	busyWaitMin = time.Millisecond
	busyWaitMax = 50 * time.Millisecond

	// inTxRuns is how often InTx runs a function whose transaction must be run again.
	inTxRuns = 5
)

// lockQuery takes SQLite's write lock, and writes nothing.
const lockQuery = `UPDATE surehook_expanded SET one = 1 WHERE one = 0`

// InTx implements sender.Outbox. The transaction waits for its turn to write, as
// with [Store.WaitToWrite]. It has the write lock from its beginning, so it cannot fail
// because it read first. A function that returns an error that matches sender.ErrRetryTx
// is run up to five times in all.
//
// A call inside fn, on its goroutine, of a method of this store that writes in a transaction
// of its own would wait for itself. It is refused at once, whatever its context. Use the
// method that takes tx.
func (s *Store) InTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	s.othersWroteAt.Store(s.now())
	var err error
	for range inTxRuns {
		if err = s.runInTx(ctx, fn); !errors.Is(err, sender.ErrRetryTx) {
			break
		}
	}
	return err
}

// InReadTx implements sender.Reader. Inside fn of InTx, on its goroutine, it is refused as InTx
// is: it would not see what that fn has written.
func (s *Store) InReadTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if s.inTx.Called() {
		return inside.ErrInTx
	}
	return s.read(ctx, func(w *work) error { return fn(w.tx) })
}

func (s *Store) runInTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	err := s.write(ctx, func(w *work) error {
		return s.inTx.Call(func() error { return fn(w.tx) })
	})
	if err == nil && s.published.Swap(false) {
		s.Wake()
	}
	return err
}

// write runs fn in a transaction that has the write lock.
func (s *Store) write(ctx context.Context, fn func(w *work) error) error {
	done, err := s.waitToWrite(ctx)
	if err != nil {
		return err
	}
	defer done()
	prepared, err := s.prepare(ctx)
	if err != nil {
		return fail("preparing statements", err)
	}
	w, err := s.begin(ctx, prepared)
	if err != nil {
		return fail("beginning a transaction", err)
	}
	committed, rollup := false, s.rollup
	defer func() { // also if fn panics or ends the goroutine
		if !committed {
			_ = w.own.Rollback()
			s.registryCache, s.rollup = registryCache{}, rollup // they may hold what was not committed
		}
	}()
	if err := s.keeps(w); err != nil {
		return err
	}
	if err := fn(w); err != nil {
		return err
	}
	if err := w.own.Commit(); err != nil {
		rollup = nil // it may be committed or not, so it is read anew
		return fail("committing", err)
	}
	committed = true
	for _, fn := range w.committed {
		fn()
	}
	return nil
}

func (s *Store) begin(ctx context.Context, prepared map[string]*sql.Stmt) (*work, error) {
	start := time.Now()
	for wait := busyWaitMin; ; wait = min(2*wait, busyWaitMax) {
		tx, err := sqlitetx.Begin(ctx, s.db)
		if err == nil {
			w := s.inCallersTx(ctx, tx.Tx, prepared)
			w.own = tx
			// A statement takes microseconds, and drivers pay for being able to
			// interrupt it.
			w.ctx = context.WithoutCancel(ctx)
			if _, err = w.exec(lockQuery); err == nil {
				return w, nil
			}
			_ = tx.Rollback()
		}
		if dberr.Classify(err) != dberr.Retry {
			return nil, err
		}
		if waited := time.Since(start); waited >= busyLimit {
			return nil, fmt.Errorf("still locked by another connection after %s: %w", waited.Round(time.Second), err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// read runs fn on one snapshot of the database. It does not take the write lock. If the
// DSN asks for immediate transactions, that depends on a driver that heeds ReadOnly.
func (s *Store) read(ctx context.Context, fn func(w *work) error) error {
	prepared, _ := s.prepare(ctx) // before Migrate there is nothing to prepare
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fail("beginning to read", err)
	}
	defer func() { _ = tx.Rollback() }()
	return fn(s.inCallersTx(ctx, tx, prepared))
}

// work runs statements in a transaction.
type work struct {
	ctx context.Context
	on  interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
	tx       *sql.Tx
	own      *sqlitetx.Tx         // is tx; nil: it is a caller's
	prepared map[string]*sql.Stmt // on the database, by their text
	bound    map[string]*sql.Stmt // the same on tx; nil: a text that was run once and is not prepared
	damage   *damage.Log

	committed []func() // called once the transaction is committed
}

func (s *Store) inCallersTx(ctx context.Context, tx *sql.Tx, prepared map[string]*sql.Stmt) *work {
	return &work{ctx: ctx, on: tx, tx: tx, prepared: prepared, damage: s.damage}
}

// stmt returns a prepared statement for this transaction, or nil if the text is not
// prepared. A text that is run again is prepared for the transaction. A list reads a part
// for each subscription with the same text, and to compile it costs more than to run it.
func (w *work) stmt(query string) *sql.Stmt {
	s, again := w.bound[query]
	if s != nil {
		return s
	}
	if w.bound == nil {
		w.bound = map[string]*sql.Stmt{}
	}
	if known := w.prepared[query]; known != nil {
		s = w.tx.StmtContext(w.ctx, known)
	} else if again {
		s, _ = w.tx.PrepareContext(w.ctx, query) // run as it is, it gives the error
	}
	w.bound[query] = s
	return s
}

func (w *work) exec(query string, args ...any) (sql.Result, error) {
	if s := w.stmt(query); s != nil { //nolint:sqlclosecheck // it ends with the transaction
		return s.ExecContext(w.ctx, args...)
	}
	return w.on.ExecContext(w.ctx, query, args...)
}

// execs runs a statement whose result does not matter.
func (w *work) execs(query string, args ...any) error {
	_, err := w.exec(query, args...)
	return err
}

func (w *work) row(query string, args ...any) *sql.Row {
	if s := w.stmt(query); s != nil { //nolint:sqlclosecheck // it ends with the transaction
		return s.QueryRowContext(w.ctx, args...)
	}
	return w.on.QueryRowContext(w.ctx, query, args...)
}

// each calls fn for the rows of a query until it returns false.
func (w *work) each(fn func(rows *sql.Rows) (bool, error), query string, args ...any) error {
	var rows *sql.Rows
	var err error
	if s := w.stmt(query); s != nil { //nolint:sqlclosecheck // it ends with the transaction
		rows, err = s.QueryContext(w.ctx, args...)
	} else {
		rows, err = w.on.QueryContext(w.ctx, query, args...)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := fn(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// fail adds to an error what was being done. An error that another transaction caused
// matches sender.ErrRetryTx, and that of a transaction of another *sql.DB
// sender.ErrInvalid.
func fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if dberr.Classify(err) == dberr.Retry {
		return fmt.Errorf("sqlite: %s: %w: %w", doing, sender.ErrRetryTx, err)
	}
	if strings.Contains(err.Error(), "statement from different database used") { // database/sql has no value for it
		return fmt.Errorf("sqlite: %s: %w transaction: it is of another *sql.DB than the store's: begin it on the one that New was given: %w", doing, sender.ErrInvalid, err)
	}
	return fmt.Errorf("sqlite: %s: %w", doing, unmigrated(err))
}

// unmigrated makes the error that a table or a column of the sender's is missing match
// sender.ErrUnfit. All drivers give SQLite's own text.
func unmigrated(err error) error {
	if text := err.Error(); !strings.Contains(text, "no such table: surehook_") && !strings.Contains(text, "has no column named") && !strings.Contains(text, "no such column") {
		return err
	}
	return fmt.Errorf("%w: a table is missing, or is older than this release: call Migrate before: %w", sender.ErrUnfit, err)
}
