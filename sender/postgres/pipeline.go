package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// pipeline is a transaction of the store, not of a caller. It sends a statement whose
// result nobody waits for together with the next one whose result somebody does. So the
// BEGIN goes with the first statement, and the last ones with the commit.
type pipeline struct {
	c       *pgx.Conn
	queries []queuedQuery
}

type queuedQuery struct {
	query
	scan func(r rows) error // nil: no rows are expected
	join joining
}

// queue queues a statement, with what reads its rows.
func (o *pipeline) queue(q query, scan func(r rows) error) {
	o.queries = append(o.queries, queuedQuery{query: q, scan: scan})
}

// take empties the queue.
func (o *pipeline) take() []queuedQuery {
	all := joined(o.queries)
	o.queries = nil
	return all
}

// many sends what is queued, and qs after it.
func (o *pipeline) many(ctx context.Context, qs []query, scan func(n int, r rows) error) (err error) {
	for n, q := range qs {
		o.queue(q, func(r rows) error { return scan(n, r) })
	}
	all := o.take()
	results := o.send(ctx, all)
	err = answers(results, all)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// commit sends what is queued, the COMMIT, and after it the statements that read once it is
// done. If err is nil, the transaction is committed. unread tells whether all was read.
func (o *pipeline) commit(ctx context.Context, reads []queuedQuery) (err, unread error) {
	o.queue(query{"COMMIT", nil}, nil)
	all := o.take()
	results := o.send(ctx, append(all, reads...))
	if err = answers(results, all); err == nil {
		unread = answers(results, reads)
	}
	if closed := results.Close(); err == nil && unread == nil {
		unread = closed
	}
	return err, unread
}

func (o *pipeline) send(ctx context.Context, qs []queuedQuery) pgx.BatchResults {
	var b pgx.Batch
	for _, q := range qs {
		b.Queue(q.text, sendable(q.args)...)
	}
	return o.c.SendBatch(ctx, &b)
}

// answers reads the results of statements.
func answers(results pgx.BatchResults, of []queuedQuery) error {
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
		if err := drain(r, 0, func(_ int, r rows) error { return q.scan(r) }); err != nil {
			return err
		}
	}
	return nil
}

func (o *pipeline) exec(ctx context.Context, text string, args ...any) (changed int64, err error) {
	if len(o.queries) > 0 {
		if err := o.many(ctx, nil, nil); err != nil {
			return 0, err
		}
	}
	tag, err := o.c.Exec(ctx, text, sendable(args)...)
	return tag.RowsAffected(), err
}

func (o *pipeline) query(ctx context.Context, text string, args ...any) (rows, error) {
	if len(o.queries) == 0 {
		return o.c.Query(ctx, text, sendable(args)...) //nolint:sqlclosecheck // the caller does
	}
	first := o.take()
	results := o.send(ctx, append(first, queuedQuery{query: query{text, args}}))
	if err := answers(results, first); err != nil {
		_ = results.Close()
		return nil, err
	}
	r, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return batchRows{r, results}, nil
}

// batchRows are the rows of the last statement of a batch.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close()
}

// rollback ends the transaction, if there is one. If that fails, the pool closes the
// connection when it is given back.
func (o *pipeline) rollback(ctx context.Context) {
	if o.c.IsClosed() || o.c.PgConn().TxStatus() == 'I' {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = o.c.Exec(ending, "ROLLBACK")
}
