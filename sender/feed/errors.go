package feed

import (
	"errors"
	"fmt"
)

var (
	// ErrExpired: the cursor is older than what is kept. The error is an
	// *ExpiredError.
	ErrExpired = errors.New("feed: the cursor is older than what is kept")

	// ErrUnauthorized is what a ViewerFunc returns for a request without credentials, or
	// with wrong ones. It is answered with 401.
	ErrUnauthorized = errors.New("feed: not authorized")

	// ErrForbidden is what a ViewerFunc returns for a caller who may not read the feed.
	// It is answered with 403.
	ErrForbidden = errors.New("feed: forbidden")
)

// ExpiredError tells that events after a cursor may be gone without having been
// read: they were pruned, or the database is an older one than that which the cursor
// came from. It matches ErrExpired.
type ExpiredError struct {
	// Next is the cursor to go on with, after what is missing has been seen to: it
	// begins with the oldest event that is kept and was not read.
	Next string
	// Ahead: the cursor is beyond the last event. The database was restored from a
	// backup, or is another one; Next begins with the oldest event that is kept.
	Ahead bool
}

func (e *ExpiredError) Error() string {
	why := "events that follow it were pruned"
	if e.Ahead {
		why = "it is beyond the last event, so it came from a later state of the database, or from another one"
	}
	return fmt.Sprintf("%v: %s: make sure of the state that the missing events would have brought, then go on with the cursor %q", ErrExpired, why, e.Next)
}

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }
