package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	beginWriting = `BEGIN ISOLATION LEVEL READ COMMITTED`
	beginReading = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
)

// ownConn is a transaction of the store's own. Statements whose results nobody waits
// for are sent with the next one whose result somebody does: its beginning too, and
// at its end, with the commit.
type ownConn struct {
	c     *pgx.Conn
	queue []queued
}

type queued struct {
	query
	scan func(r rows) error // nil: no rows are expected
	join joining
}

// later queues a statement.
func (o *ownConn) later(q query, scan func(r rows) error) {
	o.queue = append(o.queue, queued{query: q, scan: scan})
}

// take empties the queue.
func (o *ownConn) take() []queued {
	all := joined(o.queue)
	o.queue = nil
	return all
}

// many sends what is queued, and qs after it.
func (o *ownConn) many(ctx context.Context, qs []query, scan func(n int, r rows) error) (err error) {
	for n, q := range qs {
		o.later(q, func(r rows) error { return scan(n, r) })
	}
	all := o.take()
	results := o.send(ctx, all)
	err = answers(results, all)
	if closed := results.Close(); err == nil {
		err = closed
	}
	return err
}

// commit sends what is queued, and its end, and after it what is to be read once that is
// committed. If err is nil it is; whether all was read, unread says.
func (o *ownConn) commit(ctx context.Context, reads []queued) (err, unread error) {
	o.later(query{"COMMIT", nil}, nil)
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

func (o *ownConn) send(ctx context.Context, qs []queued) pgx.BatchResults {
	var b pgx.Batch
	for _, q := range qs {
		b.Queue(q.text, known(q.args)...)
	}
	return o.c.SendBatch(ctx, &b)
}

// answers reads what statements have returned.
func answers(results pgx.BatchResults, of []queued) error {
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

func (o *ownConn) exec(ctx context.Context, text string, args ...any) (changed int64, err error) {
	if len(o.queue) > 0 {
		if err := o.many(ctx, nil, nil); err != nil {
			return 0, err
		}
	}
	tag, err := o.c.Exec(ctx, text, known(args)...)
	return tag.RowsAffected(), err
}

func (o *ownConn) query(ctx context.Context, text string, args ...any) (rows, error) {
	if len(o.queue) == 0 {
		return o.c.Query(ctx, text, known(args)...) //nolint:sqlclosecheck // the caller does
	}
	first := o.take()
	results := o.send(ctx, append(first, queued{query: query{text, args}}))
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

// batchRows are the last of a batch.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close()
}

// transaction runs fn in a transaction of the store's own. What fn needs no result
// of is sent with what it does, and its end with the commit.
func (s side) transaction(ctx context.Context, begin string, w *work, fn func(w *work) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return fail("beginning a transaction", err)
	}
	return s.on(ctx, conn, begin, w, fn)
}

// on runs a transaction on a connection, and gives it back.
func (s side) on(ctx context.Context, conn session, begin string, w *work, fn func(w *work) error) (err error) {
	defer func() {
		conn.release(err)
		err = s.explained(err)
	}()
	o := &ownConn{c: conn.Conn.Conn()}
	o.later(query{begin, nil}, nil)
	if conn.set != "" || !w.dates {
		o.later(query{s.text(cmp.Or(conn.set, `SELECT {now}, NULL`)), nil}, func(r rows) error { return r.Scan(&w.now, nil) })
	}
	w.core, w.ctx, w.conn, w.own = s.core, ctx, o, o
	committed := false
	defer func() { // also if fn panics
		if !committed {
			o.rollback(ctx)
		}
		for _, fn := range w.ended {
			fn(committed)
		}
	}()
	if err := fn(w); err != nil {
		return err
	}
	if len(w.reads) > 0 && conn.set != "" { // the settings have ended with the transaction
		w.reads = append([]queued{{query: query{s.text(conn.set), nil}}}, w.reads...)
	}
	err, _ = o.commit(ctx, w.reads) // who reads notices what is not there
	committed = err == nil
	return fail("committing", err)
}

// rollback leaves the connection outside of a transaction. One for which that fails
// is closed: the pool does so when it is given back.
func (o *ownConn) rollback(ctx context.Context) {
	if o.c.IsClosed() || o.c.PgConn().TxStatus() == 'I' {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = o.c.Exec(ending, "ROLLBACK")
}
