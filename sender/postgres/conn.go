package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
)

// conn is a transaction, of pgx or of database/sql. Statements of callers' transactions
// take and return only types that every driver of database/sql knows.
type conn interface {
	exec(ctx context.Context, query string, args ...any) (changed int64, err error)
	query(ctx context.Context, query string, args ...any) (rows, error)
	// many runs statements, in one round trip if the driver can, and gives each row of the
	// n-th statement to scan.
	many(ctx context.Context, qs []query, scan func(n int, r rows) error) error
}

// query is a statement with its arguments.
type query struct {
	text string
	args []any
}

// rows are the result of a query. They must be closed before the next statement.
type rows interface {
	Next() bool
	Scan(to ...any) error
	Err() error
	Close()
}

type pgxConn struct{ tx pgx.Tx }

func (c pgxConn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := c.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (c pgxConn) query(ctx context.Context, query string, args ...any) (rows, error) {
	return c.tx.Query(ctx, query, args...) //nolint:sqlclosecheck // the caller does
}

func (c pgxConn) many(ctx context.Context, qs []query, scan func(n int, r rows) error) (err error) {
	if len(qs) == 1 {
		return one(ctx, c, qs[0], 0, scan)
	}
	var b pgx.Batch
	for _, q := range qs {
		b.Queue(q.text, q.args...)
	}
	results := c.tx.SendBatch(ctx, &b)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	for n := range qs {
		r, err := results.Query() //nolint:sqlclosecheck // drain does
		if err != nil {
			return err
		}
		if err := drain(r, n, scan); err != nil {
			return err
		}
	}
	return nil
}

type sqlConn struct{ tx *sql.Tx }

func (c sqlConn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := c.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (c sqlConn) query(ctx context.Context, query string, args ...any) (rows, error) {
	r, err := c.tx.QueryContext(ctx, query, args...) //nolint:rowserrcheck // the caller does
	if err != nil {
		return nil, err
	}
	return sqlRows{r}, nil
}

func (c sqlConn) many(ctx context.Context, qs []query, scan func(n int, r rows) error) error {
	for n, q := range qs {
		if err := one(ctx, c, q, n, scan); err != nil {
			return err
		}
	}
	return nil
}

type sqlRows struct{ *sql.Rows }

func (r sqlRows) Close() { _ = r.Rows.Close() }

func one(ctx context.Context, c conn, q query, n int, scan func(n int, r rows) error) error {
	r, err := c.query(ctx, q.text, q.args...)
	if err != nil {
		return err
	}
	return drain(r, n, scan)
}

func drain(r rows, n int, scan func(n int, r rows) error) error {
	defer r.Close()
	for r.Next() {
		if err := scan(n, r); err != nil {
			return err
		}
	}
	return r.Err()
}
