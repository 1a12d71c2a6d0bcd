package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/pgtx"
)

// conn is a transaction, of pgx or of database/sql. Statements of callers' transactions
// take and return only types that every driver of database/sql knows.
type conn interface {
	exec(ctx context.Context, text string, args ...any) (changed int64, err error)
	// many runs statements, in one round trip if the driver can, and gives each one's rows
	// to its scan.
	many(ctx context.Context, qs []query) error
}

// query is a statement with its arguments, and what reads its rows.
type query struct {
	text string
	args []any
	scan func(r rows) error // nil: no rows are expected; errEnough: no more rows are wanted
	join joining
}

// rows adds what reads the rows.
func (q query) rows(scan func(r rows) error) query {
	q.scan = scan
	return q
}

// errEnough is returned by a scan that wants no more rows.
var errEnough = errors.New("enough")

// rows are the result of a query. They must be closed before the next statement.
type rows interface {
	Next() bool
	Scan(to ...any) error
	Err() error
	Close()
}

// drain gives rows to a scan, and closes them.
func drain(r rows, scan func(r rows) error) error {
	defer r.Close()
	for r.Next() {
		if scan == nil {
			continue
		}
		if err := scan(r); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
	}
	return r.Err()
}

// pgxSender is a transaction or a connection of pgx.
type pgxSender interface {
	Query(ctx context.Context, text string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// send sends statements in one round trip, and reads their results.
func send(ctx context.Context, to pgxSender, qs []query) error {
	switch len(qs) {
	case 0:
		return nil
	case 1:
		r, err := to.Query(ctx, qs[0].text, sendable(qs[0].args)...) //nolint:sqlclosecheck // drain does
		if err != nil {
			return err
		}
		return drain(r, qs[0].scan)
	}
	results := to.SendBatch(ctx, batchOf(qs))
	err := answers(results, qs)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

func batchOf(qs []query) *pgx.Batch {
	var b pgx.Batch
	for _, q := range qs {
		b.Queue(q.text, sendable(q.args)...)
	}
	return &b
}

// answers reads the results of statements.
func answers(results pgx.BatchResults, of []query) error {
	for _, q := range of {
		if q.scan == nil {
			if _, err := results.Exec(); err != nil {
				return err
			}
			continue
		}
		r, err := results.Query() //nolint:sqlclosecheck // drain does
		if err != nil {
			return err
		}
		if err := drain(r, q.scan); err != nil {
			return err
		}
	}
	return nil
}

type pgxConn struct{ tx pgx.Tx }

func (c pgxConn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := c.tx.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

func (c pgxConn) many(ctx context.Context, qs []query) error { return send(ctx, c.tx, qs) }

type sqlConn struct{ tx *sql.Tx }

func (c sqlConn) exec(ctx context.Context, text string, args ...any) (int64, error) {
	res, err := c.tx.ExecContext(ctx, text, pgtx.Watched(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (c sqlConn) many(ctx context.Context, qs []query) error {
	for _, q := range qs {
		r, err := c.tx.QueryContext(ctx, q.text, pgtx.Watched(q.args)...) //nolint:rowserrcheck // drain does
		if err != nil {
			return err
		}
		if err := drain(sqlRows{r}, q.scan); err != nil {
			return err
		}
	}
	return nil
}

type sqlRows struct{ *sql.Rows }

func (r sqlRows) Close() { _ = r.Rows.Close() }
