package pgtx

import (
	"database/sql"
	"fmt"
)

// ErrEnded: a statement such as ROLLBACK had ended the transaction. Each further statement is
// a transaction of its own then, which has no pg_current_xact_id_if_assigned() before it
// writes. It matches sql.ErrTxDone.
var ErrEnded = fmt.Errorf("the transaction had been ended before, by a statement: %w", sql.ErrTxDone)
