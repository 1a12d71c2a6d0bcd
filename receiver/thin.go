package receiver

import (
	"cmp"
	"context"
	"fmt"
)

// Snapshot is an object's state as its source has it now.
type Snapshot[S any] struct {
	// Version is the state's version, as the source states it. It may be 0, for none, if
	// the event has none either.
	Version int64
	State   S
	// Gone: the source knows the object no longer. State is not looked at, nor is
	// Version if the event has one.
	Gone bool
}

// fetchFunc does the part of a thin event's work that comes before the transaction. It
// returns the version under which apply is to be committed.
type fetchFunc[Tx any] func(ctx context.Context, ev Event) (version int64, apply HandlerFunc[Tx], err error)

// Thin makes a Work for thin events, which only name the object that has changed.
// fetch reads the object's current state from its source before the transaction opens, so
// that none is held open meanwhile. apply stores the state, which is committed under the
// version that was fetched. The events in between are then stale, and neither order nor
// duplicates matter any more.
//
//	rcv.Handler(receiver.Thin(fetchSubscriber, storeSubscriber))
//
// A snapshot older than the event, from a replica that lags behind, is answered with 503
// and leaves no marker, so that the sender tries again. An object that is gone is deleted
// by apply, under the event's version. So fetch must not report an object as gone that
// its source does not know yet.
//
// An error of fetch is answered with 503, unless it is [Permanent]. If the stored
// version shows that the event must be a duplicate or stale, fetch is not called.
func Thin[Tx, S any](
	fetch func(ctx context.Context, ev Event) (Snapshot[S], error),
	apply func(ctx context.Context, tx Tx, ev Event, now Snapshot[S]) error,
) Work[Tx] {
	return Work[Tx]{all: thin(fetch, apply)}
}

func thin[Tx, S any](
	fetch func(ctx context.Context, ev Event) (Snapshot[S], error),
	apply func(ctx context.Context, tx Tx, ev Event, now Snapshot[S]) error,
) task[Tx] {
	if fetch == nil || apply == nil {
		return task[Tx]{}
	}
	return task[Tx]{kind: thinTask, fetch: func(ctx context.Context, ev Event) (int64, HandlerFunc[Tx], error) {
		now, err := fetch(ctx, ev)
		if err != nil {
			return 0, nil, err
		}
		if now.Gone {
			now = Snapshot[S]{Version: cmp.Or(ev.Version, now.Version), Gone: true}
		}
		return now.Version, func(ctx context.Context, tx Tx, ev Event) error {
			return apply(ctx, tx, ev, now)
		}, nil
	}}
}

// prepare looks at the stored version first: a short transaction of one read is
// cheaper than asking the source.
func (r *Receiver[Tx]) prepare(ctx context.Context, ev Event, get fetchFunc[Tx]) (version int64, apply HandlerFunc[Tx], failure *Error) {
	if ev.Version == 0 {
		return r.fetch(ctx, ev, get)
	}
	var stored int64
	failure = r.transact(ctx, func(tx Tx) *Error {
		var err error
		if stored, err = r.store.Version(ctx, tx, ev.Scope, ev.Object); err != nil {
			return failDB(ctx, ReasonDatabase, err)
		}
		return nil
	})
	if failure != nil {
		return 0, nil, failure
	}
	if stored >= ev.Version {
		return ev.Version, func(context.Context, Tx, Event) error { return errFetchFirst }, nil
	}
	return r.fetch(ctx, ev, get)
}

// fetch runs get while no transaction is open.
func (r *Receiver[Tx]) fetch(ctx context.Context, ev Event, get fetchFunc[Tx]) (version int64, apply HandlerFunc[Tx], failure *Error) {
	err := contain(func() (err error) {
		version, apply, err = get(ctx, ev)
		return err
	})
	switch {
	case isPanic(err):
		return 0, nil, fail(ReasonPanic, err)
	case err != nil && ctx.Err() != nil:
		return 0, nil, fail(ReasonTimeout, err)
	case err != nil:
		return 0, nil, fail(ReasonFetch, err)
	case version < ev.Version:
		return 0, nil, fail(ReasonLagging, fmt.Errorf("the source has version %d, and the event is of version %d", version, ev.Version))
	}
	return version, apply, nil
}
