package faultdriver

import (
	"context"
	"database/sql/driver"
	"errors"
)

// stmt is a prepared statement. A Hook cannot tell its calls from others.
type stmt struct {
	inner driver.Stmt
	c     *conn
	text  string
}

var (
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

var errNoContext = errors.New("edge: the driver's statements take no context")

func (s *stmt) Close() error                               { return s.inner.Close() }
func (s *stmt) NumInput() int                              { return s.inner.NumInput() }
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errNoContext }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	e, ok := s.inner.(driver.StmtExecContext)
	if !ok {
		return nil, errNoContext
	}
	err = s.c.call(ctx, Exec, s.text, args, func() (err error) {
		res, err = e.ExecContext(ctx, args)
		return err
	})
	return res, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := s.inner.(driver.StmtQueryContext)
	if !ok {
		return nil, errNoContext
	}
	return s.c.query(ctx, s.text, args, func() (driver.Rows, error) { return q.QueryContext(ctx, args) })
}

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.inner.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.c.CheckNamedValue(v)
}
