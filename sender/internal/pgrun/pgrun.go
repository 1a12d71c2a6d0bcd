// Package pgrun runs transactions on PostgreSQL for the stores of the sending side.
package pgrun

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
	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
)

const (
	// A transaction is run up to runs times. The wait is at most pause before the
	// second run, and doubles up to pauseMax.
	runs     = 50
	pause    = time.Millisecond
	pauseMax = 100 * time.Millisecond
)

// Again runs a transaction. It runs it again if PostgreSQL has aborted it because of
// others, or if it returns an error that matches sender.ErrRetryTx: up to fifty times
// in all, within some seconds. So many are needed: if sixteen transactions change one
// row under REPEATABLE READ, one commits and the others begin anew.
func Again(ctx context.Context, run func() error) error {
	var err error
	most := pause
	for n := range runs {
		if n > 0 {
			Sleep(ctx, rand.N(most))
			most = min(2*most, pauseMax)
		}
		if err = run(); err == nil {
			return nil
		}
		if dberr.Classify(err) == dberr.Retry {
			err = Fail("running a transaction", err)
		}
		if !errors.Is(err, sender.ErrRetryTx) {
			break
		}
	}
	return err
}

// Sleep returns after the time, or when ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// SQL runs fn in a transaction of database/sql on a pool's connection. It keeps no
// *sql.DB: that has a goroutine until it is closed, and a store is never closed. If fn has
// ended the transaction by a statement, the error matches sql.ErrTxDone.
func SQL(ctx context.Context, pool *pgxpool.Pool, fn func(tx *sql.Tx) error) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	return pgtx.InTxSQL(db, nil)(ctx, fn)
}

// Fail wraps an error with the operation that failed. An error that another transaction
// caused matches sender.ErrRetryTx.
func Fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if dberr.Classify(err) == dberr.Retry && !errors.Is(err, sender.ErrRetryTx) {
		return fmt.Errorf("postgres: %s: %w: %w", doing, sender.ErrRetryTx, err)
	}
	return fmt.Errorf("postgres: %s: %w", doing, err)
}
