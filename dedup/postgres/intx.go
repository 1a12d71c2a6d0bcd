package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/pgtx"
)

// InTx runs functions in transactions of a pool: a receiver.InTx, as pgx.BeginFunc is. A
// transaction begins with its first statement. A receiver's first statement is the
// marker's, so it saves one trip to the server. As with every pgx.Tx, two goroutines must
// not use fn's transaction at a time. With a nil pool it is nil, which receiver.New
// refuses.
//
// In a receiver.Group the savepoint of each function goes with its marker, too.
//
// The transaction is committed if fn returns nil. It is rolled back if fn panics, or
// returns an error, which InTx then returns. If fn has ended it by itself, with a statement
// such as ROLLBACK, no further statement is run, and the error matches pgx.ErrTxClosed. If fn
// begins with large objects, CopyFrom, Prepare, a nested transaction or an Exec without
// arguments, the begin takes a trip of its own.
func InTx(pool *pgxpool.Pool, opts pgx.TxOptions) func(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgtx.InTx(pool, opts)
}
