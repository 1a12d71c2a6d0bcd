package pgtx

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surehook/surehook/internal/savepoint"
)

// errUnset keeps a group's transaction from going on where a rollback would reach
// beyond the savepoint that is not there.
var errUnset = errors.New("the transaction failed before its savepoint was set")

// savepoint takes a statement of a receiver's group and owes it, if it is certain to
// succeed: it goes along with the next statement, or is not needed at all. It reports
// false for whatever else is to be sent.
//
// Nothing has been sent since what is owed became so, which is why one debt takes the
// place of another, and why there is nothing to roll back. Should the server have run
// what is owed although sending it failed, running it again changes nothing.
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

// sound tells whether a savepoint of a transaction that goes on can be set or released.
func (t *laterTx) sound() bool {
	if t.begun == nil {
		return !t.ended
	}
	conn := t.conn.PgConn()
	return conn.TxStatus() == 'T' && !conn.IsBusy() && !conn.IsClosed()
}

// pay sends what is owed on a trip of its own.
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
