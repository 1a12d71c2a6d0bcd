package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/inside"
)

const (
	// busyLimit is how long a transaction that has its turn waits for other processes, and
	// for writers of this one that do not take turns, on top of the connection's own
	// busy_timeout.
	busyLimit   = 15 * time.Second
	busyWaitMin = time.Millisecond
	busyWaitMax = 50 * time.Millisecond

	// inTxRuns bounds how often InTx runs a function whose transaction must be run
	// again.
	inTxRuns = 5
)

// lockQuery takes SQLite's write lock, and writes nothing.
const lockQuery = `UPDATE surehook_jobs SET no = no WHERE no = 0`

// InTx implements jobs.Store. The transaction waits until all that were begun before by InTx
// of this store have ended. SQLite keeps no queue: otherwise one could wait for longer than a
// lease lasts, while others come and go. It has the write lock from its beginning: one that
// reads first may be refused the lock later.
//
// A call inside fn, on its goroutine, would wait for itself. It is refused at once: use
// the method that takes tx.
func (s *Store) InTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if ctx.Err() != nil || !s.writing.TryAcquire(1) { // others have the turn, or ask for it
		if s.calls.Called() {
			return inside.ErrInTx
		}
		if err := s.writing.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("sqlite: waiting for a turn to write: %w", err)
		}
	}
	defer s.writing.Release(1)
	var err error
	for range inTxRuns {
		if err = s.inTx(ctx, fn); !errors.Is(err, sender.ErrRetryTx) {
			break
		}
	}
	return err
}

// InReadTx implements sender.Reader.
func (s *Store) InReadTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fail("beginning to read", err)
	}
	defer func() { _ = tx.Rollback() }()
	return fn(tx)
}

func (s *Store) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return fail("beginning a transaction", err)
	}
	defer func() { _ = tx.Rollback() }() // also if fn panics; after a commit it does nothing
	if err := s.file.Moved(ctx, tx); err != nil {
		return fmt.Errorf("%w: %w", sender.ErrUnfit, err)
	}
	if err := s.calls.Call(func() error { return fn(tx.Tx) }); err != nil {
		return err
	}
	return fail("committing", tx.Commit())
}

func (s *Store) begin(ctx context.Context) (*sqlitetx.Tx, error) {
	start := time.Now()
	for wait := busyWaitMin; ; wait = min(2*wait, busyWaitMax) {
		tx, err := sqlitetx.Begin(ctx, s.db)
		if err == nil {
			if _, err = tx.ExecContext(ctx, lockQuery); err == nil {
				return tx, nil
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

var errNoTx = fmt.Errorf("%w transaction: it is nil", sender.ErrInvalid)

// locked takes the write lock in a caller's transaction: one that reads first may be
// refused the lock later.
func locked(ctx context.Context, tx *sql.Tx) error {
	if tx == nil {
		return errNoTx
	}
	_, err := tx.ExecContext(ctx, lockQuery)
	return fail("locking", err)
}

// fail wraps an error with the operation that failed. An error that another transaction
// caused matches sender.ErrRetryTx.
func fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if dberr.Classify(err) == dberr.Retry {
		return fmt.Errorf("sqlite: %s: %w: %w", doing, sender.ErrRetryTx, err)
	}
	return fmt.Errorf("sqlite: %s: %w", doing, err)
}
