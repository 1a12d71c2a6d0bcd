package feed

import (
	"errors"
	"fmt"
)

var (
	// ErrExpired: events after the cursor may be gone. The error is an
	// *ExpiredError.
	ErrExpired = errors.New("feed: the cursor is older than what is kept")

	// ErrUnauthorized: the request has no credentials, or wrong ones. A ViewerFunc
	// returns it; the answer is 401.
	ErrUnauthorized = errors.New("feed: not authorized")

	// ErrForbidden: the caller may not read the feed. A ViewerFunc returns it; the
	// answer is 403.
	ErrForbidden = errors.New("feed: forbidden")
)

// ExpiredError tells that events after a cursor may be gone unread: they were pruned,
// or the database was restored from a time before the cursor. It matches ErrExpired.
type ExpiredError struct {
	// Next is the cursor to go on with once the reader has dealt with the gap. The
	// page after it begins with the oldest event that is kept and was not read.
	Next string
	// Ahead: the cursor is beyond the last event, because the database was restored
	// from a backup, or is another one. Next begins with the oldest event that is
	// kept.
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
