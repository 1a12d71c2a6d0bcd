package receiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
)

// Route gives the events of some types a function, and says what they are. [OnState],
// [OnFact] and [OnThin] make routes, [Router] takes them.
//
// Its pattern is an exact type, or "prefix.*" for every type that begins with "prefix.",
// or "*" for all. If several match, the exact one counts, then the longest prefix, then
// "*"; their order does not matter.
type Route[Tx any] struct {
	pattern string
	task    func(strict bool) task[Tx] // nil if it was made of no function
}

// OnState routes events whose types match pattern to h, as states (see [State]). An event
// that was overtaken by a newer version of its object is skipped, and h does not run.
//
//	receiver.OnState("invoice.*", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Invoice]) error { … })
//
// The events' data are decoded into a T. Data that does not fit is an error that is
// [Permanent]: sending the same bytes again cannot mend it. An event without data gives a
// zero T. With json.RawMessage as T the data is not decoded.
//
// The routes of one object's types should be all states or all facts: a state is skipped
// if a newer state came, and facts move no version.
func OnState[Tx, T any](pattern string, h func(ctx context.Context, tx Tx, ev Typed[T]) error) Route[Tx] {
	return typedRoute(pattern, stateTask, h)
}

// OnFact routes events whose types match pattern to h, as facts: each counts once,
// whatever its version; see [Fact]. Their data are decoded as those of [OnState] are.
//
//	receiver.OnFact("invoice.paid", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Payment]) error { … })
func OnFact[Tx, T any](pattern string, h func(ctx context.Context, tx Tx, ev Typed[T]) error) Route[Tx] {
	return typedRoute(pattern, factTask, h)
}

func typedRoute[Tx, T any](pattern string, kind taskKind, h func(ctx context.Context, tx Tx, ev Typed[T]) error) Route[Tx] {
	route := Route[Tx]{pattern: pattern}
	if h == nil {
		return route
	}
	route.task = func(strict bool) task[Tx] {
		return task[Tx]{kind: kind, apply: func(ctx context.Context, tx Tx, ev Event) error {
			typed, err := decodeData[T](ev, strict)
			if err != nil {
				return Permanent(err)
			}
			return h(ctx, tx, typed)
		}}
	}
	return route
}

// OnThin routes thin events whose types match pattern. fetch reads the object's current
// state from its source while no transaction is open, and apply stores it under the
// version that was fetched. The answers are those of [Thin], also when the source is
// behind, is away, or knows the object no longer.
//
// The receiver looks at the stored version first. If it shows that the event is a
// duplicate or stale, fetch is not called.
func OnThin[Tx, S any](
	pattern string,
	fetch func(ctx context.Context, ev Event) (Snapshot[S], error),
	apply func(ctx context.Context, tx Tx, ev Event, now Snapshot[S]) error,
) Route[Tx] {
	route := Route[Tx]{pattern: pattern}
	if t := thin(fetch, apply); t.kind != noTask {
		route.task = func(bool) task[Tx] { return t }
	}
	return route
}

func (r Route[Tx]) check() error {
	if err := checkPattern(r.pattern); err != nil {
		return fmt.Errorf("receiver: the route's pattern %q: %w", r.pattern, err)
	}
	if r.task == nil {
		return fmt.Errorf("receiver: the route of %q has no function", r.pattern)
	}
	return nil
}

func checkPattern(pattern string) error {
	if pattern == challengeType {
		return errors.New("events of this type are answered by the receiver itself")
	}
	if ident.TypePattern(pattern) != nil {
		return errors.New(`it must be an exact type, "prefix.*" or "*"`)
	}
	return nil
}
