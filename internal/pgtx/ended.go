package pgtx

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrEnded: a statement such as ROLLBACK had ended the transaction, or the transaction's first
// statement had failed before it began. Each further statement would be a transaction of its
// own, which has no pg_current_xact_id_if_assigned() before it writes. It matches
// sql.ErrTxDone and pgx.ErrTxClosed.
var ErrEnded = fmt.Errorf("the transaction had been ended before, by a statement such as ROLLBACK, or its first statement had failed before it began: %w: %w", sql.ErrTxDone, pgx.ErrTxClosed)
