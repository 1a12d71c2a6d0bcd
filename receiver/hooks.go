package receiver

import (
	"context"
	"net/http"
)

// Hooks are called with the outcome of a request. Every one is optional. They are called
// by the request's own goroutine outside of any transaction and before the answer is
// written, so they must not block. A panic in a hook is logged and changes nothing. After
// Start, exactly one hook of those other than Verified is called. If the request was
// verified, Verified is called before that one.
type Hooks struct {
	// Start is called before anything is checked. Its context goes to everything
	// that follows. The header is not verified. It is nil for an event that was not posted,
	// such as one of catch-up or of an inbox.
	Start func(ctx context.Context, header http.Header) context.Context

	// Verified is called for every event that was signed rightly: ev.Verified has the ID
	// of the key that matched. Once the key before the newest has not matched for as long
	// as the sender tries again, it may be retired.
	Verified func(ctx context.Context, ev Event)

	Applied   func(ctx context.Context, ev Event)
	Duplicate func(ctx context.Context, ev Event)
	// Stale is called for a state that was skipped: the function did not run, because its
	// object's version, or a newer one, had been applied; see [State].
	Stale        func(ctx context.Context, ev Event)
	DeadLettered func(ctx context.Context, ev Event, cause error)

	// Reapplied is called for an event that was taken before and was applied again because
	// of a request; see [Receiver.Reapply].
	Reapplied func(ctx context.Context, ev Event)

	// Ignored is called for a verified event that no route of a [Router] wants.
	Ignored func(ctx context.Context, ev Event)

	// Recorded is called for an event that is kept, to be applied later; see
	// [Receiver.RecordHandler]. The later outcome has hooks of its own.
	Recorded func(ctx context.Context, ev Event)

	// Challenged is called for a sender's challenge; see [Result.Challenged].
	Challenged func(ctx context.Context, ev Event)

	// Rejected is called for a request that did not become a verified event.
	Rejected func(ctx context.Context, err *Error)

	// Failed is called for a verified event that could not be applied now.
	Failed func(ctx context.Context, ev Event, err *Error)
}
