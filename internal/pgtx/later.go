package pgtx

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// InTx returns a function that runs functions in transactions of a pool, as
// pgx.BeginFunc does. Each transaction begins together with its first statement, on one
// trip. In a receiver.Group the savepoint of each function goes with its first
// statement, too. InTx of a nil pool is nil.
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
	led   string   // the name of its first statement, which the connection has prepared
	owed  []string // savepoints to set or release before the next statement; see savepoint
}

var _ pgx.Tx = (*laterTx)(nil)

// begin begins the transaction, if it has not begun, and sends the savepoints that are
// owed.
func (t *laterTx) begin(ctx context.Context) (pgx.Tx, error) {
	if t.ended {
		return nil, pgx.ErrTxClosed
	}
	if t.over() {
		return nil, ErrEnded
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

// along sends statements behind the begin and the savepoints that are owed, on one
// trip. The next result is the first statement's.
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
	if err == nil { // the next result has the error, too
		t.owed = nil
	}
	return results
}

// goesAlong tells whether a statement can go on one trip with the begin and the savepoints
// that are owed. A batch takes no statement with options of its own. A statement that the
// connection has not prepared cannot go behind a savepoint. Batches are prepared before
// they run, so a statement that cannot be prepared would keep the savepoint from being
// set.
func (t *laterTx) goesAlong(sql string, args []any) bool {
	if t.ended || t.over() || t.begun != nil && (t.owed == nil || sql != t.led) {
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
	// Without arguments the text can be several statements, which a batch would
	// refuse.
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

// LargeObjects has no context and returns no error: the first call on the result
// reports a failure.
func (t *laterTx) LargeObjects() pgx.LargeObjects {
	tx, err := t.begin(context.Background())
	if err != nil {
		var none pgx.Batch
		none.BeginTx(t.opts)
		tx = pgx.FailedBatchResults(&none, err).Tx()
	}
	return tx.LargeObjects()
}

// Conn begins the transaction: statements on the connection itself belong to it.
func (t *laterTx) Conn() *pgx.Conn {
	_, _ = t.begin(context.Background()) // if it cannot begin, the next statement fails, too
	return t.conn
}

// Commit refuses to commit what a statement of the application has ended before: the server
// would only warn, and what was rolled back would seem to be committed.
func (t *laterTx) Commit(ctx context.Context) error {
	if t.over() {
		return ErrEnded
	}
	return t.end(ctx, pgx.Tx.Commit)
}

// over tells whether a statement of the application has ended the transaction. Each further
// one would be committed at once, without those before it.
func (t *laterTx) over() bool { return t.begun != nil && over(t.conn) }

func (t *laterTx) Rollback(ctx context.Context) error { return t.end(ctx, pgx.Tx.Rollback) }

func (t *laterTx) end(ctx context.Context, how func(pgx.Tx, context.Context) error) error {
	switch {
	case t.begun != nil:
		return how(t.begun, ctx) // which ends all savepoints
	case t.ended:
		return pgx.ErrTxClosed
	}
	t.ended = true
	return nil
}

// firstRows are the rows of the transaction's first statement. The connection is free
// again when they have ended.
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

// firstRow is a row of the transaction's first statement.
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

// failed is the result of statements in a transaction that could not begin.
func failed(err error) pgx.BatchResults {
	return pgx.FailedBatchResults(&pgx.Batch{}, err)
}
