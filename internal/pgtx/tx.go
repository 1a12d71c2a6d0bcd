// Package pgtx gives the two kinds of callers' transactions on PostgreSQL one
// interface: a pgx.Tx, and a *sql.Tx of any driver. It also runs transactions of pgx
// that begin with their first statement.
package pgtx

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
)

// Durable is an expression that makes the transaction that evaluates it durable: if
// synchronous_commit is off, it is on until the transaction's end. All other values
// stay: they are stricter, or safe from a crash of the server. The expression is NULL
// or text, and costs less than to set the setting in any case.
const Durable = `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END`

// Tx is a caller's transaction. If a statement of the caller's has ended it, nothing is
// run, and the error is ErrEnded: what is stored would be committed at once, without the
// caller's change. That is seen with pgx and with its driver for database/sql, without a
// trip. Arguments are scalars, times and []byte: drivers of database/sql differ in all
// other types.
type Tx interface {
	// Exec returns how many rows were changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Row scans the one row into the pointers. Its error matches sql.ErrNoRows if there
	// is none.
	Row(ctx context.Context, query string, args []any, into ...any) error
	// Rows calls each once for each row, until it returns an error, and returns
	// that error.
	Rows(ctx context.Context, query string, args []any, each func(Row) error) error
}

// Row is one of a query's rows.
type Row interface {
	Scan(into ...any) error
}

// Pgx is for a pgx.Tx. It returns nil for nil.
func Pgx(tx pgx.Tx) Tx {
	if tx == nil {
		return nil
	}
	return native{tx}
}

type native struct{ tx pgx.Tx }

func (n native) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := Open(n.tx); err != nil {
		return 0, err
	}
	tag, err := n.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (n native) Row(ctx context.Context, query string, args []any, into ...any) error {
	if err := Open(n.tx); err != nil {
		return err
	}
	return n.tx.QueryRow(ctx, query, args...).Scan(into...)
}

func (n native) Rows(ctx context.Context, query string, args []any, each func(Row) error) error {
	if err := Open(n.tx); err != nil {
		return err
	}
	rows, err := n.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// SQL is for a *sql.Tx. It returns nil for nil.
func SQL(tx *sql.Tx) Tx {
	if tx == nil {
		return nil
	}
	return standard{tx}
}

type standard struct{ tx *sql.Tx }

func (s standard) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := s.tx.ExecContext(ctx, query, Watched(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s standard) Row(ctx context.Context, query string, args []any, into ...any) error {
	return s.tx.QueryRowContext(ctx, query, Watched(args)...).Scan(into...)
}

func (s standard) Rows(ctx context.Context, query string, args []any, each func(Row) error) error {
	rows, err := s.tx.QueryContext(ctx, query, Watched(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
