package pgtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook/internal/dberr"
)

// InTxSQL returns a function that runs functions in transactions of db. It commits none that
// a function has ended by a statement: its error is ErrEnded then. InTxSQL of a nil db is nil.
func InTxSQL(db *sql.DB, opts *sql.TxOptions) func(ctx context.Context, fn func(*sql.Tx) error) error {
	if db == nil {
		return nil
	}
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		conn, tx, err := begin(ctx, db, opts)
		if err != nil {
			return err
		}
		defer func() {
			_ = tx.Rollback() // also if fn panics; after a commit it does nothing
			_ = conn.Close()
		}()
		if err := fn(tx); err != nil {
			return err
		}
		if err := unended(ctx, conn, tx); err != nil && ctx.Err() == nil { // else Commit says what ctx says
			return err
		}
		return tx.Commit()
	}
}

// begin begins a transaction on a connection that it returns, too. As DB.BeginTx does, it takes
// another connection if one turns out to be dead: after a restart of the server all are that
// were idle.
func begin(ctx context.Context, db *sql.DB, opts *sql.TxOptions) (*sql.Conn, *sql.Tx, error) {
	for open := db.Stats().OpenConnections; ; open-- {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		tx, err := conn.BeginTx(ctx, opts)
		if err == nil {
			return conn, tx, nil
		}
		_ = conn.Close() // which does not keep a dead one
		if !errors.Is(err, driver.ErrBadConn) || open <= 0 {
			return nil, nil, err
		}
	}
}

// notInTransaction is PostgreSQL's no_active_sql_transaction.
const notInTransaction = "25P01"

// unended returns an error if a connection is in no transaction. For a COMMIT without one, the
// server has a warning and no error, and drivers say nothing. It costs a trip if the driver is
// not pgx's.
func unended(ctx context.Context, conn *sql.Conn, tx *sql.Tx) error {
	known := false
	err := conn.Raw(func(of any) error {
		for {
			switch c := of.(type) {
			case *stdlib.Conn:
				if known = true; over(c.Conn()) {
					return ErrEnded
				}
				return nil
			case interface{ Raw() driver.Conn }: // a driver around another one, for traces
				of = c.Raw()
			default:
				return nil
			}
		}
	})
	if err != nil || known {
		return err
	}
	_, err = tx.ExecContext(ctx, "SAVEPOINT surehook_open") // which can only be set in a transaction
	return EndedIf(err)
}

// EndedIf adds ErrEnded to an error of the server which says that a statement stands in no
// transaction.
func EndedIf(err error) error {
	if dberr.SQLState(err) == notInTransaction {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return err
}
