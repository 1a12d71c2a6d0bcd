package faultdriver

import (
	"context"
	"database/sql/driver"
	"errors"
)

// Kind is the kind of a driver's call.
type Kind string

// The kinds of calls that go through a Hook.
const (
	Connect  Kind = "connect"
	Prepare  Kind = "prepare"
	Begin    Kind = "begin"
	Exec     Kind = "exec"
	Query    Kind = "query"
	Commit   Kind = "commit"
	Rollback Kind = "rollback"
)

// Call is one call of a driver.
type Call struct {
	Kind Kind
	Text string // the statement; "" where there is none
	Args []driver.NamedValue
	Conn *Session
}

// Session is one connection. Like the connection, it is never used by two goroutines
// at a time.
type Session struct {
	Note any // for the Hook's own use
}

// Hook stands around each call of a driver. It makes the call by calling do, once or not at
// all, and its error becomes the call's error. If it returns an error after do, the call
// has failed after its effect. A commit and a rollback have the context with which the
// transaction began.
type Hook func(ctx context.Context, c Call, do func() error) error

// Wrap returns a connector, for sql.OpenDB, whose calls go through a hook.
func Wrap(inner driver.Connector, hook Hook) driver.Connector { return connector{inner, hook} }

// Open returns a connector for a driver that has none of its own.
func Open(d driver.Driver, dsn string) (driver.Connector, error) {
	if c, ok := d.(driver.DriverContext); ok {
		return c.OpenConnector(dsn)
	}
	return dsnConnector{d, dsn}, nil
}

type dsnConnector struct {
	d   driver.Driver
	dsn string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.d }

type connector struct {
	inner driver.Connector
	hook  Hook
}

func (c connector) Driver() driver.Driver { return c.inner.Driver() }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	w := &conn{hook: c.hook}
	err := c.hook(ctx, Call{Kind: Connect, Conn: &w.session}, func() error {
		inner, err := c.inner.Connect(ctx)
		if err == nil {
			w.inner = inner
		}
		return err
	})
	if err != nil {
		if w.inner != nil {
			_ = w.inner.Close()
		}
		return nil, err
	}
	return w, nil
}

// conn has all optional interfaces. If the inner connection lacks one, conn behaves as
// database/sql would without it.
type conn struct {
	inner   driver.Conn
	hook    Hook
	session Session
	began   context.Context // the transaction's
}

var (
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
)

func (c *conn) call(ctx context.Context, kind Kind, text string, args []driver.NamedValue, do func() error) error {
	return c.hook(ctx, Call{Kind: kind, Text: text, Args: args, Conn: &c.session}, do)
}

func (c *conn) Close() error { return c.inner.Close() }

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	p, ok := c.inner.(driver.ConnPrepareContext)
	if !ok {
		return nil, errNoContext
	}
	var inner driver.Stmt // a nil pointer of the driver would not be a nil interface
	err := c.call(ctx, Prepare, text, nil, func() error {
		s, err := p.PrepareContext(ctx, text)
		if err == nil {
			inner = s
		}
		return err
	})
	if err != nil {
		if inner != nil {
			_ = inner.Close()
		}
		return nil, err
	}
	return &stmt{inner, c, text}, nil
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	var inner driver.Tx
	c.began = ctx
	err := c.call(ctx, Begin, "", nil, func() error {
		b, ok := c.inner.(driver.ConnBeginTx)
		if !ok {
			return errors.New("edge: the driver has no BeginTx")
		}
		t, err := b.BeginTx(ctx, opts)
		if err == nil {
			inner = t
		}
		return err
	})
	if err != nil {
		if inner != nil { // database/sql takes the connection to be outside of a transaction
			_ = inner.Rollback()
		}
		return nil, err
	}
	return &tx{inner, c}, nil
}

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (res driver.Result, err error) {
	e, ok := c.inner.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	err = c.call(ctx, Exec, text, args, func() (err error) {
		res, err = e.ExecContext(ctx, text, args)
		return err
	})
	return res, err
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.inner.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	return c.query(ctx, text, args, func() (driver.Rows, error) { return q.QueryContext(ctx, text, args) })
}

func (c *conn) query(ctx context.Context, text string, args []driver.NamedValue, do func() (driver.Rows, error)) (rows driver.Rows, err error) {
	err = c.call(ctx, Query, text, args, func() error {
		r, err := do()
		if err == nil {
			rows = r
		}
		return err
	})
	if err != nil && rows != nil {
		_ = rows.Close()
		rows = nil
	}
	return rows, err
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.inner.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.inner.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if v, ok := c.inner.(driver.Validator); ok {
		return v.IsValid()
	}
	return true
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.inner.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type tx struct {
	inner driver.Tx
	c     *conn
}

func (t *tx) Commit() error   { return t.end(Commit, t.inner.Commit) }
func (t *tx) Rollback() error { return t.end(Rollback, t.inner.Rollback) }

// end rolls back what the hook did not end, as a database does whose client is gone.
// Closing the connection would not do: database/sql leaves open what a transaction has
// prepared if its connection is bad, and SQLite keeps a connection's locks for as long.
func (t *tx) end(kind Kind, do func() error) error {
	ended := false
	err := t.c.call(t.c.began, kind, "", nil, func() error {
		ended = true
		return do()
	})
	if !ended {
		_ = t.inner.Rollback()
	}
	return err
}
