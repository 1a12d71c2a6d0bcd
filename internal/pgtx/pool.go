package pgtx

import (
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// WithSQL gives fn a *sql.DB whose connections are those of the pool. The pool stays open.
func WithSQL(pool *pgxpool.Pool, fn func(*sql.DB) error) error {
	if pool == nil {
		return errors.New("the pool is nil: open one with pgxpool.New")
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	return fn(db)
}
