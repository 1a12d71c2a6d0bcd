// Package sqlitetx begins transactions of SQLite, and tells whether one is still open.
package sqlitetx

import (
	"context"
	"database/sql"
	"fmt"
)

// ErrEnded: the transaction was ended before. It matches sql.ErrTxDone.
var ErrEnded = fmt.Errorf("the transaction had been ended before, by a statement or by SQLite itself: %w", sql.ErrTxDone)

// Open returns ErrEnded if tx is no transaction any more. database/sql does not notice that:
// each further statement is committed at once, although the ones before were rolled back. A
// function ends its transaction by a statement such as ROLLBACK or INSERT OR ROLLBACK. SQLite
// ends it by itself if a statement that writes is interrupted, as by the end of a context, and
// after some errors of the disk (sqlite.org/lang_transaction.html). A function that keeps quiet
// about that error must not have its work counted as done.
//
// The caller must roll tx back after ErrEnded, as after every error.
func Open(ctx context.Context, tx *sql.Tx) error {
	// Within a transaction it is refused, and changes nothing. No function and no pragma
	// says as much. If it begins one, the caller's rollback ends that.
	if _, err := tx.ExecContext(ctx, "BEGIN"); err == nil {
		return ErrEnded
	}
	return nil
}
