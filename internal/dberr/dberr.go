// Package dberr tells the owner of a transaction what to do about a database's error.
// It recognises the errors by their codes and imports no driver.
package dberr

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// Kind says what to do about an error.
type Kind int

const (
	// Other: neither of the below, nil and the errors of a context included.
	Other Kind = iota
	// Retry: the transaction lost against another one. Run again from its
	// beginning, it can succeed.
	Retry
	// Unavailable: the database cannot be reached or cannot write just now.
	Unavailable
)

func (k Kind) String() string {
	switch k {
	case Retry:
		return "retry"
	case Unavailable:
		return "unavailable"
	default:
		return "other"
	}
}

// Classify looks through all errors that err wraps. Besides the errors that Stated knows
// it recognises some that most likely come from a database: a connection that ended in the
// middle, an error of the network, the text of a locked database. They can have other
// sources, too.
//
// context.DeadlineExceeded is Other although it is a net.Error: it says how long the
// caller wanted to wait, and nothing about the database.
func Classify(err error) Kind {
	if err == nil {
		return Other
	}
	if k := Stated(err); k != Other {
		return k
	}
	// Before the text: a lost connection must not be taken for a lock.
	if unreachable(err) {
		return Unavailable
	}
	if saysLocked(err) {
		return Retry
	}
	return Other
}

// Stated is Classify by errors that only a database can have made. It looks through all
// errors that err wraps.
//
// Postgres drivers name the SQLSTATE (PostgreSQL, appendix A). SQLite drivers give the
// result code (sqlite.org/rescode.html), whose low byte is the primary one, or only the
// text, in an error of their own type. Those of MySQL and MariaDB give the number: see
// [MySQL].
func Stated(err error) Kind {
	if k := ofSQLState(SQLState(err)); k != Other {
		return k
	}
	if k := first(err, ofSQLite); k != Other {
		return k
	}
	if k := ofMySQL(MySQL(err)); k != Other {
		return k
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return Unavailable
	}
	// pgx has no other sign of a connection that it has given up before, or that it
	// cannot write to. Only its own errors have the method.
	var unsent interface {
		error
		SafeToRetry() bool
	}
	if errors.As(err, &unsent) && (unsent.Error() == "conn closed" || strings.HasPrefix(unsent.Error(), "write failed: ")) {
		return Unavailable
	}
	return Other
}

// SQLState is the SQLSTATE that a PostgreSQL driver's error names, or "". pgx and lib/pq have
// a method for it. The driver of bun, and go-pg, give the fields of the server's message.
func SQLState(err error) string {
	var pg interface {
		error
		SQLState() string
	}
	if errors.As(err, &pg) {
		return pg.SQLState()
	}
	var message interface {
		error
		Field(key byte) string
		IntegrityViolation() bool
	}
	if errors.As(err, &message) {
		return message.Field('C')
	}
	return ""
}

func ofSQLState(state string) Kind {
	switch state {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03": // lock_not_available
		return Retry
	case "25006": // read_only_sql_transaction: it is a standby, or became one
		return Unavailable
	case "25P03", // idle_in_transaction_session_timeout: each of these ends the connection
		"25P04", // transaction_timeout
		"57P01", // admin_shutdown
		"57P02", // crash_shutdown
		"57P03", // cannot_connect_now
		"57P05": // idle_session_timeout
		return Unavailable
	}
	// Two codes are left out. The cause of 25P02 (in_failed_sql_transaction) was reported
	// before and was swallowed. 57014 (query_canceled) does not say who cancelled and why: a
	// user, a statement_timeout, and sometimes a lock_timeout that passes just as the lock is
	// granted (2 of 91,000 on PostgreSQL 15).
	if strings.HasPrefix(state, "08") || // connection exceptions
		strings.HasPrefix(state, "53") || // insufficient resources
		strings.HasPrefix(state, "58") { // system errors: of input and output
		return Unavailable
	}
	return Other
}

// ofSQLite looks at an error of an SQLite driver. Errors of other origin have a Code()
// int too, and HTTP's 517 is also SQLITE_BUSY_SNAPSHOT: only the type's name tells them
// apart.
func ofSQLite(err error) Kind {
	if !strings.Contains(strings.ToLower(fmt.Sprintf("%T", err)), "sqlite") {
		return Other
	}
	if coded, ok := err.(interface{ Code() int }); ok {
		return ofSQLiteCode(coded.Code())
	}
	if saysLocked(err) {
		return Retry
	}
	return Other
}

// first returns the first answer about err and all errors that it wraps which is not zero.
func first[T comparable](err error, of func(error) T) (answer T) {
	var zero T
	if err == nil {
		return zero
	}
	if answer = of(err); answer != zero {
		return answer
	}
	switch wrapping := err.(type) { //nolint:errorlint // this is the way through the tree
	case interface{ Unwrap() error }:
		return first(wrapping.Unwrap(), of)
	case interface{ Unwrap() []error }:
		for _, each := range wrapping.Unwrap() {
			if answer = first(each, of); answer != zero {
				return answer
			}
		}
	}
	return zero
}

func saysLocked(err error) bool {
	text := err.Error()
	return strings.Contains(text, "database is locked") || strings.Contains(text, "database table is locked")
}

func ofSQLiteCode(code int) Kind {
	switch code & 0xff {
	case 5, // SQLITE_BUSY
		6: // SQLITE_LOCKED
		return Retry
	case 10, // SQLITE_IOERR
		13, // SQLITE_FULL
		14: // SQLITE_CANTOPEN
		return Unavailable
	}
	return Other
}

// unreachable recognises errors that services other than the database can cause, too.
func unreachable(err error) bool {
	// pgx reports a server that closed the connection in the middle of an answer
	// in these words and no others.
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if first(err, lostMySQL) {
		return true
	}
	var n net.Error
	//nolint:errorlint // a connection's own timeout wraps nothing but still says Is(context.DeadlineExceeded)
	return errors.As(err, &n) && n != context.DeadlineExceeded
}
