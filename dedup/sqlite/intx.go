package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/sqlitetx"
)

// turnLimit is how long InTx waits for the transactions before it. It ends a call inside the
// function of another one, which would wait for its own end.
const turnLimit = 15 * time.Second

// InTx runs functions in transactions of a *sql.DB, one at a time and in the order of the
// calls: a receiver.InTx, in place of receiver.SQL. SQLite has one writer at a time and keeps
// no queue: transactions that begin by themselves poll for their turn, and under load one can
// wait for seconds while others come and go, such as a request beside busy workers of an inbox.
//
// Make one InTx for a *sql.DB, and give it to all that write: the receiver, its inbox or
// catch-up, Prune, and your own transactions. It takes no turns with another InTx, nor with
// other processes; for these, SQLite's busy_timeout counts.
//
// The transaction is committed if fn returns nil. It is rolled back if fn panics, or returns
// an error, which InTx then returns. It ends with ctx. If the turn does not come within 15
// seconds, the error matches dedup.ErrRetryTx. That happens to each call inside fn, too, unless
// its ctx ends before. With a nil db it is nil, which receiver.New refuses.
//
// Nothing is committed while the database's file is not where it was first: SQLite goes on with
// a file that was removed or replaced, and what it has is gone with the process. The file is
// looked at ten times a second. After a restore, start the process again, or open another
// *sql.DB and make another InTx and other stores.
func InTx(db *sql.DB) func(ctx context.Context, fn func(*sql.Tx) error) error {
	if db == nil {
		return nil
	}
	turn := make(chan struct{}, 1) // goroutines that wait for it get it in the order in which they came
	var file sqlitetx.File
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		select {
		case turn <- struct{}{}:
		default:
			if err := wait(ctx, turn); err != nil {
				return err
			}
		}
		defer func() { <-turn }()
		tx, err := sqlitetx.Begin(ctx, db)
		if err != nil {
			return err
		}
		// Also when fn panics or ends the goroutine; after a commit it does nothing.
		defer func() { _ = tx.Rollback() }()
		if err := fn(tx.Tx); err != nil {
			return err
		}
		if err := file.Moved(ctx, tx); err != nil { // not before: who reads first may be refused the write lock later
			return fmt.Errorf("sqlite: nothing is written to the database: %w", err)
		}
		return tx.Commit()
	}
}

func wait(ctx context.Context, turn chan<- struct{}) error {
	timer := time.NewTimer(turnLimit)
	defer timer.Stop()
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("sqlite: the transactions before this one have not ended within %s; one that is begun inside another one's function waits for itself: %w", turnLimit, dedup.ErrRetryTx)
	}
}
