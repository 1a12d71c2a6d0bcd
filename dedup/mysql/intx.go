package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/surehook/surehook/internal/dberr"
)

// A savepoint is gone with its transaction. Its name is not that of a receiver.Group.
const (
	setSavepoint     = "SAVEPOINT surehook_begun"
	releaseSavepoint = "RELEASE SAVEPOINT surehook_begun"
	noSuchSavepoint  = 1305 // ER_SP_DOES_NOT_EXIST
)

// InTx runs functions in transactions of a *sql.DB: a receiver.InTx, in place of
// receiver.SQL, which cannot see that the transaction has ended before its commit. A
// function ends it by a statement such as ROLLBACK or COMMIT, or by one that changes a
// table (CREATE, ALTER, TRUNCATE), which commits first. The server ends it by itself when
// it resolves a deadlock, and the function learned that by an error. MySQL then takes the
// COMMIT without a word, and the event would be answered as applied. InTx commits nothing
// in that case, and its error matches sql.ErrTxDone. It finds out by a savepoint, which
// costs two trips to the server.
//
// With nil opts the transactions are READ COMMITTED. Otherwise opts are taken as they are: an
// empty one leaves the level to the connection, which saves a trip. The transaction ends with
// ctx. With a nil db InTx returns nil, which receiver.New refuses.
func InTx(db *sql.DB, opts *sql.TxOptions) func(ctx context.Context, fn func(*sql.Tx) error) error {
	if db == nil {
		return nil
	}
	if opts == nil {
		opts = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return func(ctx context.Context, fn func(*sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, opts)
		if err != nil {
			return err
		}
		// Also when fn panics or ends the goroutine; after a commit it does nothing.
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, setSavepoint); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, releaseSavepoint)
		if dberr.MySQL(err) == noSuchSavepoint {
			return fmt.Errorf("mysql: the transaction had been ended before, by a statement, or by the server because of a deadlock: %w: %w", sql.ErrTxDone, err)
		}
		if err != nil {
			return err
		}
		return tx.Commit()
	}
}
