package postgres

import (
	"context"
	"database/sql"

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
// such as ROLLBACK, no further statement is run, and the error matches pgx.ErrTxClosed. One
// that begins another transaction at once goes unnoticed: COMMIT or ROLLBACK with AND CHAIN.
// If fn begins with large objects, CopyFrom, Prepare, a nested transaction or an Exec without
// arguments, the begin takes a trip of its own.
func InTx(pool *pgxpool.Pool, opts pgx.TxOptions) func(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgtx.InTx(pool, opts)
}

// InTxSQL runs functions in transactions of a *sql.DB of any driver. It is a
// receiver.InTx, to be used in place of receiver.SQL, which cannot see that fn has ended
// its transaction by a statement such as ROLLBACK. For PostgreSQL only warns at the commit
// then, and the event would be answered as applied. InTxSQL commits nothing in that case,
// and its error matches sql.ErrTxDone. With pgx's driver (stdlib) it knows by itself; with
// another one it asks the server before each commit, which costs a trip. It does not notice
// if fn has begun another transaction by a statement, such as BEGIN after ROLLBACK.
//
// opts may be nil. The transaction ends with ctx. With a nil db it is nil, which receiver.New
// refuses.
func InTxSQL(db *sql.DB, opts *sql.TxOptions) func(ctx context.Context, fn func(*sql.Tx) error) error {
	return pgtx.InTxSQL(db, opts)
}
