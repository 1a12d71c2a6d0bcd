package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/sender"
)

const (
	// How often InTx runs a function whose transaction must be run again, and how long
	// it waits at most before the second run, and before the later ones.
	inTxRuns     = 20
	inTxPause    = time.Millisecond
	inTxPauseMax = 100 * time.Millisecond
)

// InTx implements jobs.Store. The transaction has the isolation level that is the
// database's default. What PostgreSQL aborts because of other transactions is run
// again, up to twenty times in all, within about a second.
func (s *Store[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	var err error
	pause := inTxPause
	for run := range inTxRuns {
		if run > 0 {
			sleep(ctx, rand.N(pause))
			pause = min(2*pause, inTxPauseMax)
		}
		if err = s.run(ctx, fn); err == nil {
			return nil
		}
		if dberr.Classify(err) == dberr.Retry {
			err = fail("running a transaction", err)
		}
		if !errors.Is(err, sender.ErrRetryTx) {
			break
		}
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// runSQL keeps no *sql.DB: one has a goroutine that ends when it is closed, and a
// store is never closed.
func runSQL(ctx context.Context, pool *pgxpool.Pool, fn func(tx *sql.Tx) error) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // also if fn panics; after a commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// fail says what an error came of. One that another transaction caused matches
// sender.ErrRetryTx.
func fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if dberr.Classify(err) == dberr.Retry && !errors.Is(err, sender.ErrRetryTx) {
		return fmt.Errorf("postgres: %s: %w: %w", doing, sender.ErrRetryTx, err)
	}
	return fmt.Errorf("postgres: %s: %w", doing, err)
}
