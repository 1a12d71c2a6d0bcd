package pgtx

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surehook/surehook/internal/savepoint"
)

// errUnset ends a group's transaction whose savepoint is missing: a rollback would
// reach too far back.
var errUnset = errors.New("the transaction failed before its savepoint was set")

// savepoint notes a statement of a receiver's group instead of sending it, if it is
// certain to succeed. It goes along with the next statement, or is not needed at all.
// savepoint returns false for all other statements: they must be sent.
//
// Nothing was sent since the noted statement, so a new one may replace it, and there is
// nothing to roll back. If sending it fails although the server has run it, running it
// again changes nothing.
func (t *laterTx) savepoint(sql string) (tag pgconn.CommandTag, done bool) {
	if !t.sound() {
		return tag, false
	}
	owed := strings.Join(t.owed, "; ")
	switch {
	case sql == savepoint.Set && owed == "":
		owed = savepoint.Set
	case sql == savepoint.Next && (owed == "" || owed == savepoint.Next):
		owed = savepoint.Next
	case sql == savepoint.Next && owed == savepoint.Set:
	case sql == savepoint.Release && (owed == "" || owed == savepoint.Next):
		owed = savepoint.Release
	case sql == savepoint.Release && owed == savepoint.Set:
		owed = ""
	case sql == savepoint.Back && (owed == savepoint.Set || owed == savepoint.Next):
	default:
		return tag, false
	}
	if t.owed = nil; owed != "" {
		t.owed = strings.Split(owed, "; ")
	}
	return tag, true
}

// sound tells whether a savepoint can be set or released: the transaction has not
// failed.
func (t *laterTx) sound() bool {
	if t.begun == nil {
		return !t.ended
	}
	conn := t.conn.PgConn()
	return conn.TxStatus() == 'T' && !conn.IsBusy() && !conn.IsClosed()
}

// pay sends the savepoints that are owed on a trip of its own.
func (t *laterTx) pay(ctx context.Context) error {
	if t.owed == nil {
		return nil
	}
	if !t.sound() {
		return errUnset
	}
	_, err := t.begun.Exec(ctx, strings.Join(t.owed, "; "))
	if err == nil {
		t.owed = nil
	}
	return err
}
