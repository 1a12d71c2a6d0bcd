package receiver

import (
	"context"
	"database/sql"
)

// InTx runs fn in a transaction: it begins one, commits it if fn returns nil and
// rolls it back otherwise. It returns nil only after a successful commit, and
// fn's error if fn returned one. It may run fn again from the beginning.
//
// Most libraries have it as a method:
//
//	gorm: func(ctx context.Context, fn func(*gorm.DB) error) error { return db.WithContext(ctx).Transaction(fn) }
//	pgx:  func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
//
// The InTx of dedup/postgres begins a transaction of pgx with its first statement, so that
// the marker costs no trip of its own. On PostgreSQL it also notices that fn has ended the
// transaction by a statement such as ROLLBACK. These two do not, and the event would be
// answered as applied.
type InTx[Tx any] func(ctx context.Context, fn func(Tx) error) error

// SQL is the InTx of a *sql.DB; opts may be nil. The transaction ends with ctx.
// With a nil db it is nil, which New refuses.
//
// A function must not end the transaction by a statement such as ROLLBACK. SQLite refuses
// the commit then, and the event is not taken. PostgreSQL only warns, and database/sql
// does not pass that on: the event would be answered as applied. On PostgreSQL, use the
// InTxSQL of dedup/postgres in place of SQL: it refuses that, and so do InTx, for pgx, and
// a [Group]. MySQL and MariaDB do not even warn: use the InTx of dedup/mysql there.
//
// On SQLite, use the InTx of dedup/sqlite, whose transactions take turns. Those of SQL poll for
// the write lock, and under load one can wait for seconds.
func SQL(db *sql.DB, opts *sql.TxOptions) InTx[*sql.Tx] {
	if db == nil {
		return nil
	}
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, opts)
		if err != nil {
			return err
		}
		// Also when fn panics or ends the goroutine; after a commit it does nothing.
		defer func() { _ = tx.Rollback() }()
		if err := fn(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// Adapt makes an InTx of one transaction type from one of another, for instance
// of generated queries from *sql.Tx. The store is adapted by dedup.Adapt.
func Adapt[To, From any](inTx InTx[From], wrap func(From) To) InTx[To] {
	if inTx == nil || wrap == nil {
		return nil
	}
	return func(ctx context.Context, fn func(To) error) error {
		return inTx(ctx, func(tx From) error { return fn(wrap(tx)) })
	}
}
