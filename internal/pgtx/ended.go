package pgtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// ErrEnded: a statement such as ROLLBACK had ended the transaction, or the transaction's first
// statement had failed before it began. Each further statement would be a transaction of its
// own, which has no pg_current_xact_id_if_assigned() before it writes. It matches
// sql.ErrTxDone and pgx.ErrTxClosed.
var ErrEnded = fmt.Errorf("the transaction had been ended before, by a statement such as ROLLBACK, or its first statement had failed before it began: "+
	"end a transaction by Commit or Rollback, or by what its function returns: %w: %w", sql.ErrTxDone, pgx.ErrTxClosed)

// Open returns ErrEnded if a statement has ended tx. It costs no trip: each answer of the
// server says whether the connection is in a transaction.
func Open(tx pgx.Tx) error {
	if _, looks := tx.(*laterTx); looks { // by itself, and its Conn would begin it
		return nil
	}
	if over(tx.Conn()) {
		return ErrEnded
	}
	return nil
}

// over tells whether a connection that has begun a transaction is in none any more. While it
// is busy it does not know yet, and takes no other statement.
func over(c *pgx.Conn) bool {
	if c == nil || c.PgConn() == nil { // of a transaction that a test has made up
		return false
	}
	conn := c.PgConn()
	return !conn.IsBusy() && conn.TxStatus() == 'I'
}

// Watched returns the arguments of a statement in a *sql.Tx so that pgx's driver refuses to
// send it, with ErrEnded, if a statement has ended the transaction. Other drivers cannot tell
// without a trip: they send it.
func Watched(args []any) []any {
	if len(args) == 0 {
		return args
	}
	args = slices.Clone(args)
	args[0] = watch{args[0]}
	return args
}

// watch stands for a statement's first argument. database/sql gives arguments to pgx's driver
// as they are, and pgx has this one look at the connection before the statement is sent. Every
// other driver is given the Value.
type watch struct{ value any }

var (
	_ pgx.QueryRewriter = watch{}
	_ driver.Valuer     = watch{}
)

// RewriteQuery implements pgx.QueryRewriter.
func (w watch) RewriteQuery(_ context.Context, conn *pgx.Conn, query string, args []any) (string, []any, error) {
	if over(conn) {
		return "", nil, ErrEnded
	}
	return query, append([]any{w.value}, args...), nil
}

// Value implements driver.Valuer.
func (w watch) Value() (driver.Value, error) {
	return driver.DefaultParameterConverter.ConvertValue(w.value)
}

// String is for logs of statements.
func (w watch) String() string { return fmt.Sprint(w.value) }
