package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/pgtx"
)

// InTx runs functions in transactions of a pool: a receiver.InTx, as pgx.BeginFunc
// is. A transaction begins with its first statement, which for a receiver is the
// marker's, and so costs it one trip to the server less. fn's transaction must not
// be used by two goroutines at a time, as no pgx.Tx may be. With a nil pool it is
// nil, which receiver.New refuses.
//
// In a receiver.Group the savepoint of each function goes with its marker, too.
//
// It is committed if fn returns nil, and rolled back if fn returns an error, which
// InTx then returns, or panics. What fn begins with large objects, CopyFrom, Prepare,
// a nested transaction or an Exec without arguments begins on a trip of its own.
func InTx(pool *pgxpool.Pool, opts pgx.TxOptions) func(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgtx.InTx(pool, opts)
}
