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
	queries []query
}

func (p *pipeline) queue(q query) { p.queries = append(p.queries, q) }

// take empties the queue.
func (p *pipeline) take() []query {
	all := joined(p.queries)
	p.queries = nil
	return all
}

// flush sends what is queued.
func (p *pipeline) flush(ctx context.Context) error { return send(ctx, p.c, p.take()) }

// many sends what is queued, and qs after it.
func (p *pipeline) many(ctx context.Context, qs []query) error {
	p.queries = append(p.queries, qs...)
	return p.flush(ctx)
}

// exec runs a statement after what is queued.
func (p *pipeline) exec(ctx context.Context, text string, args ...any) (changed int64, err error) {
	if err := p.flush(ctx); err != nil {
		return 0, err
	}
	tag, err := p.c.Exec(ctx, text, sendable(args)...)
	return tag.RowsAffected(), err
}

// commit sends what is queued, the COMMIT, and after it the statements that read once it
// is done. If err is nil, the transaction is committed. unread tells whether all was read.
func (p *pipeline) commit(ctx context.Context, reads []query) (err, unread error) {
	p.queue(query{text: "COMMIT"})
	all := p.take()
	results := p.c.SendBatch(ctx, batchOf(append(all, reads...)))
	if err = answers(results, all); err == nil {
		unread = answers(results, reads)
	}
	if closed := results.Close(); err == nil && unread == nil {
		unread = closed
	}
	return err, unread
}

// rollback ends the transaction, if there is one. If that fails, the pool closes the
// connection when it is given back.
func (p *pipeline) rollback(ctx context.Context) {
	if p.c.IsClosed() || p.c.PgConn().TxStatus() == 'I' {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = p.c.Exec(ending, "ROLLBACK")
}
