package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/pgrun"
)

// maxRuns is how often a transaction of the store is run if it loses against others.
const maxRuns = 5

// InTx implements sender.Outbox. The transaction has the database's default isolation
// level. With pgx it begins with its first statement, on one trip to the server, unless
// that is an Exec without arguments. If PostgreSQL aborts it because of other transactions,
// it is run again, up to fifty times in all, within some seconds.
func (s *Store[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	before := s.published.Load()
	err := pgrun.Again(ctx, func() error { return s.run(ctx, fn) })
	// Others may have published instead of fn. But no commit of theirs can take away the
	// signal for this one, as it would if there were one flag for all.
	if err == nil && s.published.Load() != before {
		s.Wake()
	}
	return err
}

const (
	beginWriting = `BEGIN ISOLATION LEVEL READ COMMITTED`
	beginReading = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
)

// transaction runs fn in a transaction of the store. Statements whose results fn does not
// need are sent with later ones, or with the commit.
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
	p := &pipeline{c: conn.Conn.Conn()}
	w.core, w.ctx, w.conn, w.pipeline = s.core, ctx, p, p
	p.queue(query{text: begin})
	if conn.set != "" || !w.dates {
		p.queue(w.query(cmp.Or(conn.set, `SELECT {now}, NULL`)).rows(func(r rows) error { return r.Scan(&w.now, nil) }))
	}
	committed := false
	defer func() { // also if fn panics
		if !committed {
			p.rollback(ctx)
		}
		for _, fn := range w.ended {
			fn(committed)
		}
	}()
	if err := fn(w); err != nil {
		return err
	}
	if len(w.reads) > 0 && conn.set != "" { // the settings have ended with the transaction
		w.reads = append([]query{w.query(conn.set)}, w.reads...)
	}
	err, _ = p.commit(ctx, w.reads) // its readers notice what is missing
	committed = err == nil
	return fail("committing", err)
}

// write runs fn in a transaction of the store. fn runs again if the transaction lost
// against another one, so fn begins by resetting what it returns.
func (s side) write(ctx context.Context, fn func(w *work) error) error {
	return s.writeLater(ctx, func(w *work) error {
		if err := w.pipeline.flush(ctx); err != nil {
			return fail("beginning a transaction", err)
		}
		return fn(w)
	})
}

func (c *core) write(ctx context.Context, fn func(w *work) error) error {
	return side{core: c}.write(ctx, fn)
}

// writeLater is write without a trip for the beginning: w.now is set with the result of the
// first statement.
func (s side) writeLater(ctx context.Context, fn func(w *work) error) error {
	return s.writeAs(ctx, work{}, fn)
}

// writeAs is writeLater for work of a kind.
func (s side) writeAs(ctx context.Context, kind work, fn func(w *work) error) error {
	var err error
	for run := range maxRuns {
		w := kind
		w.again = run > 0
		err = s.transaction(ctx, beginWriting, &w, fn)
		if !errors.Is(err, sender.ErrRetryTx) {
			break
		}
	}
	return err
}

// read runs fn on one snapshot of the database.
func (s side) read(ctx context.Context, fn func(w *work) error) error {
	return s.transaction(ctx, beginReading, &work{}, func(w *work) error {
		if err := w.pipeline.flush(ctx); err != nil {
			return fail("beginning to read", err)
		}
		return fn(w)
	})
}

func (c *core) read(ctx context.Context, fn func(w *work) error) error {
	return side{core: c}.read(ctx, fn)
}

// readOne reads one row, in a transaction of its own.
func (s side) readOne(ctx context.Context, text string, args []any, to ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	if conn.set == "" {
		err := conn.QueryRow(ctx, s.text(text), sendable(args)...).Scan(to...)
		conn.release(err)
		return err
	}
	return s.on(ctx, conn, beginReading, &work{}, func(w *work) error {
		w.pipeline.queue(w.query(text, args...).rows(func(r rows) error { return r.Scan(to...) }))
		return nil
	})
}

// work runs statements in a transaction.
type work struct {
	*core
	conn
	ctx      context.Context
	pipeline *pipeline // nil in a caller's transaction
	now      timestamp // the database's time after the beginning; not set in a caller's transaction

	again bool // it ran before, and lost against another transaction
	dates bool // it reads the time itself, or needs none
	ended []func(committed bool)
	reads []query // sent with the commit, and run after it
}

// after has fn called when the transaction has ended. If committed is false, it may have
// been committed all the same.
func (w *work) after(fn func(committed bool)) { w.ended = append(w.ended, fn) }

// committed queues a statement that only reads. It is sent with the commit and runs after
// it. Its result may be missing: the success of the commit does not depend on it.
func (w *work) committed(q query) { w.reads = append(w.reads, q) }

// callers returns the work in a caller's transaction.
func (s *Store[Tx]) callers(ctx context.Context, tx Tx) (*work, error) {
	c, ok := s.in(tx)
	if !ok {
		return nil, fmt.Errorf("%w transaction: it is nil", sender.ErrInvalid)
	}
	if c, ok := c.(pgxConn); ok {
		if err := pgtx.Open(c.tx); err != nil { // else an event would be stored without the caller's change
			return nil, fail("joining the caller's transaction", err)
		}
	}
	return &work{core: s.core, ctx: ctx, conn: c}, nil
}

// query makes a query of a statement.
func (w *work) query(text string, args ...any) query { return query{text: w.text(text), args: args} }

// send runs queries, in one round trip if the driver can. Their scans must not run
// statements: the connection is in use.
func (w *work) send(qs ...query) error { return w.many(w.ctx, qs) }

// exec runs a statement, and returns how many rows it changed.
func (w *work) exec(query string, args ...any) (int64, error) {
	return w.conn.exec(w.ctx, w.text(query), args...)
}

// execs runs a statement whose result does not matter. In a transaction of the store its
// error comes with a later statement, or with the commit.
func (w *work) execs(text string, args ...any) error {
	if w.pipeline != nil {
		w.pipeline.queue(w.query(text, args...))
		return nil
	}
	_, err := w.exec(text, args...)
	return err
}

// each calls fn for the rows of a query until it returns false. fn must not run
// statements: the connection is in use.
func (w *work) each(fn func(r rows) (bool, error), text string, args ...any) error {
	return w.send(w.query(text, args...).rows(func(r rows) error {
		more, err := fn(r)
		if err == nil && !more {
			err = errEnough
		}
		return err
	}))
}

// row prepares a query of one row. If there is none, its Scan returns sql.ErrNoRows.
func (w *work) row(query string, args ...any) row { return row{w, query, args} }

type row struct {
	w     *work
	query string
	args  []any
}

func (r row) Scan(to ...any) error {
	found := false
	err := r.w.each(func(rs rows) (bool, error) {
		found = true
		return false, rs.Scan(to...)
	}, r.query, r.args...)
	if err == nil && !found {
		return sql.ErrNoRows
	}
	return err
}

// numbers reads a column of numbers.
func (w *work) numbers(query string, args ...any) (all []int64, err error) {
	err = w.each(func(r rows) (bool, error) {
		var n int64
		err := r.Scan(&n)
		all = append(all, n)
		return true, err
	}, query, args...)
	return all, err
}

// keys reads rows of (event, subscription).
func (w *work) keys(query string, args ...any) (all []dispatch.DeliveryKey, err error) {
	err = w.each(func(r rows) (bool, error) {
		var k dispatch.DeliveryKey
		err := r.Scan(&k.Event, &k.Subscription)
		all = append(all, k)
		return true, err
	}, query, args...)
	return all, err
}

func fail(doing string, err error) error { return pgrun.Fail(doing, unmigrated(err)) }

// unmigrated makes the error that a table or a column of the sender's is missing match
// sender.ErrUnfit. The transaction in which it came up is aborted, and another connection
// might not be free, so the ledger is not asked.
func unmigrated(err error) error {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) || pg.SQLState() != "42P01" && pg.SQLState() != "42703" || !strings.Contains(err.Error(), "surehook_") {
		return err
	}
	return fmt.Errorf("%w: a table is missing, or is older than this release: call Migrate before, and set Config.Schema if the tables are in a schema of their own: %w", sender.ErrUnfit, err)
}
