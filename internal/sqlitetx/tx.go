package sqlitetx

import (
	"context"
	"database/sql"
	"errors"
)

// Tx is a transaction on a connection that nobody else has before it is ended.
//
// A commit can fail and leave the transaction open: a deferred foreign key is violated, or,
// without a write-ahead log, another connection reads. database/sql takes it for ended, and
// modernc.org/sqlite did nothing about that before 1.46.1. The connection then kept the write
// lock in the pool until the process ended, and whoever got it could begin nothing.
type Tx struct {
	*sql.Tx
	conn *sql.Conn
}

// Begin begins a transaction. Rollback must be called in any case; after Commit it does
// nothing.
func Begin(ctx context.Context, db *sql.DB) (*Tx, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Tx{tx, conn}, nil
}

// Commit commits, or ends the transaction all the same.
func (t *Tx) Commit() error {
	err := t.Tx.Commit()
	// If the context has ended, database/sql rolls back by itself, and may close the connection.
	if err != nil && !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		// It is refused if there is no transaction.
		_, _ = t.conn.ExecContext(context.Background(), "ROLLBACK")
	}
	_ = t.conn.Close()
	return err
}

// Rollback ends the transaction, if it is not ended, and gives the connection back.
func (t *Tx) Rollback() error {
	err := t.Tx.Rollback()
	_ = t.conn.Close()
	return err
}
