package catchup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Source serves the events of a feed. [Client] reads one over HTTP. A Source must be safe
// for concurrent use if Run and Reconcile are called at the same time.
type Source interface {
	// Page returns up to limit events that follow a cursor; "" is the beginning of the
	// kept events. If there are none it waits for some, for about wait. An *ExpiredError
	// says that some events after the cursor are gone. An error that matches
	// ErrPageTooLarge says that fewer events must be asked for. One that matches
	// context.DeadlineExceeded says that the page did not come in time: fewer events are asked
	// for after a pause. Any other error counts as temporary, and so does a panic.
	Page(ctx context.Context, after string, limit int, wait time.Duration) (Page, error)
}

// Page is one answer of a Source.
type Page struct {
	// Events are the events as they would have been posted. Without any, there were
	// none after the cursor.
	Events []json.RawMessage
	// Next is the cursor to go on with; never empty. Behind events it is another one than the
	// page was asked for with. If it is the same, it counts as the end of the feed, and the
	// page is asked for again as often as an empty one.
	Next string
}

// ErrExpired: the cursor is older than what is kept. The error is an *ExpiredError.
var ErrExpired = errors.New("catchup: the cursor is older than what the sender keeps")

// ErrPageTooLarge: a page is larger than ClientConfig.MaxPageBytes. It is asked for again
// with fewer events. For a page of one event the error is a *PageTooLargeError.
var ErrPageTooLarge = errors.New("catchup: the page is too large")

// PageTooLargeError says that a page of one event is too large. It matches
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

// ExpiredError says that a sender no longer keeps the events after a cursor. It matches
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
	RetryAfter time.Duration // how long the sender asks to wait; 0: it does not ask
}

func (e *StatusError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("catchup: the sender answered %d", e.Status)
	}
	return fmt.Sprintf("catchup: the sender answered %d: %s", e.Status, e.Detail)
}
