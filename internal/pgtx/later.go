package pgtx

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// InTx runs functions in transactions of a pool, as pgx.BeginFunc does, each of which
// begins with its first statement, on one trip. In a receiver.Group the savepoint of each
// function goes with its first statement, too. With a nil pool it is nil.
func InTx(pool *pgxpool.Pool, opts pgx.TxOptions) func(ctx context.Context, fn func(pgx.Tx) error) error {
	if pool == nil {
		return nil
	}
	return func(ctx context.Context, fn func(pgx.Tx) error) error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release() // it closes a connection that is still in a transaction
		tx := &laterTx{conn: conn.Conn(), opts: opts}
		defer func() { _ = tx.Rollback(ctx) }() // also if fn panics; after a commit it does nothing
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
}

// laterTx is a transaction that begins with its first statement.
type laterTx struct {
	conn  *pgx.Conn
	opts  pgx.TxOptions
	begun pgx.Tx   // nil: there was none yet
	ended bool     // without having begun
	led   string   // the statement that it began with, which the connection knows
	owed  []string // savepoints to be set or released before anything else; see savepoint
}

var _ pgx.Tx = (*laterTx)(nil)

// begin begins the transaction, if it has not begun, and pays what is owed.
func (t *laterTx) begin(ctx context.Context) (pgx.Tx, error) {
	if t.ended {
		return nil, pgx.ErrTxClosed
	}
	if t.begun == nil {
		tx, err := t.conn.BeginTx(ctx, t.opts)
		if err != nil {
			return nil, err
		}
		t.begun = tx
	}
	return t.begun, t.pay(ctx)
}

// along sends statements behind what must precede them, on one trip. The result that is
// next is the first statement's.
func (t *laterTx) along(ctx context.Context, queued ...*pgx.QueuedQuery) pgx.BatchResults {
	var b pgx.Batch
	if t.begun == nil {
		b.BeginTx(t.opts)
		t.led = queued[0].SQL
	}
	for _, statement := range t.owed {
		b.Queue(statement)
	}
	ahead := b.Len()
	b.QueuedQueries = append(b.QueuedQueries, queued...)
	var results pgx.BatchResults
	if t.begun == nil {
		results = t.conn.SendBatch(ctx, &b)
		t.begun = results.Tx()
	} else {
		results = t.begun.SendBatch(ctx, &b)
	}
	var err error
	for range ahead {
		_, failed := results.Exec()
		err = cmp.Or(err, failed)
	}
	if err == nil { // it is the next result's error, too
		t.owed = nil
	}
	return results
}

// goesAlong tells whether a statement can go with what must precede it. A batch takes
// none with options of its own. Nor does it take one behind a savepoint that the
// connection may not know: batches are prepared before they are run, so that one that
// cannot be prepared would keep the savepoint from being set.
func (t *laterTx) goesAlong(sql string, args []any) bool {
	if t.ended || t.begun != nil && (t.owed == nil || sql != t.led) {
		return false
	}
	for _, arg := range args {
		switch arg.(type) {
		case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
			return false
		}
	}
	return true
}

func (t *laterTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if tag, done := t.savepoint(sql); done {
		return tag, nil
	}
	// Without arguments it can be several statements, which a batch would refuse.
	if len(args) == 0 && t.begun == nil || !t.goesAlong(sql, args) {
		tx, err := t.begin(ctx)
		if err != nil {
			return pgconn.CommandTag{}, err
		}
		return tx.Exec(ctx, sql, args...)
	}
	results := t.along(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	tag, err := results.Exec()
	if closed := results.Close(); err == nil {
		err = closed
	}
	return tag, err
}

func (t *laterTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !t.goesAlong(sql, args) {
		tx, err := t.begin(ctx)
		if err != nil {
			return failed(err).Query()
		}
		return tx.Query(ctx, sql, args...)
	}
	results := t.along(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	r, err := results.Query()
	if err != nil {
		_ = results.Close()
		return r, err
	}
	return &firstRows{Rows: r, results: results}, nil
}

func (t *laterTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if !t.goesAlong(sql, args) {
		tx, err := t.begin(ctx)
		if err != nil {
			return failed(err).QueryRow()
		}
		return tx.QueryRow(ctx, sql, args...)
	}
	results := t.along(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	return firstRow{results.QueryRow(), results}
}

func (t *laterTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.begun == nil && !t.ended && b.Len() > 0 {
		return t.along(ctx, b.QueuedQueries...)
	}
	tx, err := t.begin(ctx)
	if err != nil {
		return failed(err)
	}
	return tx.SendBatch(ctx, b)
}

func (t *laterTx) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Begin(ctx)
}

func (t *laterTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	tx, err := t.begin(ctx)
	if err != nil {
		return 0, err
	}
	return tx.CopyFrom(ctx, table, columns, rows)
}

func (t *laterTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	tx, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx.Prepare(ctx, name, sql)
}

// LargeObjects has no context and no error: what fails is told by what is done with them.
func (t *laterTx) LargeObjects() pgx.LargeObjects {
	tx, err := t.begin(context.Background())
	if err != nil {
		var none pgx.Batch
		none.BeginTx(t.opts)
		tx = pgx.FailedBatchResults(&none, err).Tx()
	}
	return tx.LargeObjects()
}

// Conn begins: what is done with the connection itself belongs to the transaction.
func (t *laterTx) Conn() *pgx.Conn {
	_, _ = t.begin(context.Background()) // if it cannot begin, nor can whatever comes next
	return t.conn
}

func (t *laterTx) Commit(ctx context.Context) error { return t.end(ctx, pgx.Tx.Commit) }

func (t *laterTx) Rollback(ctx context.Context) error { return t.end(ctx, pgx.Tx.Rollback) }

func (t *laterTx) end(ctx context.Context, how func(pgx.Tx, context.Context) error) error {
	switch {
	case t.begun != nil:
		return how(t.begun, ctx) // which ends what savepoints there are
	case t.ended:
		return pgx.ErrTxClosed
	}
	t.ended = true
	return nil
}

// firstRows are those of the statement that the transaction began with. The
// connection is free again when they have ended.
type firstRows struct {
	pgx.Rows
	results pgx.BatchResults
	closed  error
}

func (r *firstRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.Close()
	}
	return more
}

func (r *firstRows) Close() {
	r.Rows.Close()
	r.closed = r.results.Close()
}

func (r *firstRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.closed
}

// firstRow is one of those.
type firstRow struct {
	pgx.Row
	results pgx.BatchResults
}

func (r firstRow) Scan(to ...any) error {
	err := r.Row.Scan(to...)
	if closed := r.results.Close(); err == nil {
		err = closed
	}
	return err
}

// failed answers to what is sent in a transaction that could not be begun.
func failed(err error) pgx.BatchResults {
	return pgx.FailedBatchResults(&pgx.Batch{}, err)
}
