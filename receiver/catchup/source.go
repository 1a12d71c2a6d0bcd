package catchup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Source is where events are read from. [Client] is one over HTTP. It must be safe
// for concurrent use if Run and Reconcile are called at the same time.
type Source interface {
	// Page returns the events that follow a cursor, up to limit of them; "" is the
	// beginning of what is kept. If there are none it waits for some, for about wait.
	// An *ExpiredError tells that some of what follows the cursor is gone, and one that
	// matches ErrPageTooLarge that fewer events are to be asked for. Any other error is
	// taken as one that passes.
	Page(ctx context.Context, after string, limit int, wait time.Duration) (Page, error)
}

// Page is what a Source returns.
type Page struct {
	// Events are the events as they would have been posted. Without any, there were
	// none after the cursor.
	Events []json.RawMessage
	// Next is the cursor to go on with; never empty.
	Next string
}

// ErrExpired: the cursor is older than what is kept. The error is an *ExpiredError.
var ErrExpired = errors.New("catchup: the cursor is older than what the sender keeps")

// ErrPageTooLarge: a page is larger than ClientConfig.MaxPageBytes. It is asked for
// again with fewer events. Of a page of one event the error is a *PageTooLargeError.
var ErrPageTooLarge = errors.New("catchup: the page is too large")

// PageTooLargeError is of a page of one event that is too large. It matches
// ErrPageTooLarge. With a Next, the event is passed over as a [Refusal]; without one, it
// is asked for again and again.
type PageTooLargeError struct {
	Next string // the cursor behind the event; "": it is not known
	Err  error  // how large it may be, and why Next is not known
}

func (e *PageTooLargeError) Error() string { return fmt.Sprintf("%v: %v", ErrPageTooLarge, e.Err) }

// Is makes errors.Is(err, ErrPageTooLarge) true.
func (e *PageTooLargeError) Is(target error) bool { return target == ErrPageTooLarge }

// Unwrap gives the cause.
func (e *PageTooLargeError) Unwrap() error { return e.Err }

// ExpiredError tells that a sender does not keep what follows a cursor. It matches
// ErrExpired.
type ExpiredError struct {
	Next string // to go on with; "": from the beginning of what is kept
}

func (e *ExpiredError) Error() string { return ErrExpired.Error() }

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// StatusError is an answer that is no page.
type StatusError struct {
	Status     int
	Detail     string        // what the sender says about it, shortened
	RetryAfter time.Duration // how long it asks to be left alone; 0: it does not
}

func (e *StatusError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("catchup: the sender answered %d", e.Status)
	}
	return fmt.Sprintf("catchup: the sender answered %d: %s", e.Status, e.Detail)
}
