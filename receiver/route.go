package receiver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/ident"
)

// Route gives the events of some types a function. [On] and [OnState] make routes,
// [Router] takes them.
//
// Its pattern is an exact type, or "prefix.*" for every type that begins with "prefix.",
// or "*" for all. If several match, the exact one counts, then the longest prefix, then
// "*"; their order does not matter.
type Route[Tx any] struct {
	pattern string
	handler func(strict bool) HandlerFunc[Tx] // nil if it was made of none
}

// On routes events whose types match pattern to h, with their data decoded into a
// T. Data that does not fit is an error that is [Permanent]: sending the same bytes
// again cannot mend it. An event without data gives a zero T.
//
//	receiver.On("invoice.paid", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Invoice]) error { … })
//
// With json.RawMessage as T the data is not decoded.
func On[Tx, T any](pattern string, h func(ctx context.Context, tx Tx, ev Typed[T]) error) Route[Tx] {
	route := Route[Tx]{pattern: pattern}
	if h == nil {
		return route
	}
	route.handler = func(strict bool) HandlerFunc[Tx] {
		return func(ctx context.Context, tx Tx, ev Event) error {
			typed, err := decodeData[T](ev, strict)
			if err != nil {
				return Permanent(err)
			}
			return h(ctx, tx, typed)
		}
	}
	return route
}

// OnState routes thin events whose types match pattern: fetch reads the object's current
// state from its source while no transaction is open, and apply stores it, under the
// version that was fetched. The answers are those of [Thin], also when the source is
// behind, is away, or knows the object no longer.
//
// The receiver looks at the marker and the stored version first. For a duplicate or a
// stale event, fetch is not called.
func OnState[Tx, S any](
	pattern string,
	fetch func(ctx context.Context, ev Event) (Snapshot[S], error),
	apply func(ctx context.Context, tx Tx, ev Event, now Snapshot[S]) error,
) Route[Tx] {
	route := Route[Tx]{pattern: pattern}
	if fetch == nil || apply == nil {
		return route
	}
	wanted := &stateWanted[Tx]{Thin(fetch, apply)}
	route.handler = func(bool) HandlerFunc[Tx] {
		return func(context.Context, Tx, Event) error { return wanted }
	}
	return route
}

// stateWanted is how a HandlerFunc says that the event is a thin one: it makes the
// receiver end the transaction, fetch, and begin another one.
type stateWanted[Tx any] struct{ thin ThinFunc[Tx] }

func (*stateWanted[Tx]) Error() string {
	return "receiver: the object's state must be fetched first: a function of OnState works only under a Receiver"
}

func (r Route[Tx]) check() error {
	if err := checkPattern(r.pattern); err != nil {
		return fmt.Errorf("receiver: the route's pattern %q: %w", r.pattern, err)
	}
	if r.handler == nil {
		return fmt.Errorf("receiver: the route of %q has no function", r.pattern)
	}
	return nil
}

func checkPattern(pattern string) error {
	switch pattern {
	case "*":
		return nil
	case challengeType:
		return errors.New("events of this type are answered by the receiver itself")
	}
	if ident.Type(strings.TrimSuffix(pattern, ".*")) != nil {
		return errors.New(`it must be an exact type, "prefix.*" or "*"`)
	}
	return nil
}
