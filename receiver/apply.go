package receiver

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

// work is what the application wants done with its events: one of the first three.
type work[Tx any] struct {
	apply  HandlerFunc[Tx]
	thin   ThinFunc[Tx]
	record RecordFunc[Tx]
	then   func(ctx context.Context, tx Tx) error // nil, but of a Trusted
}

// take brings a verified event to its end. cause is why it became a dead letter.
//
//nolint:staticcheck // ST1008: cause is a part of the result and no failure
func (r *Receiver[Tx]) take(ctx context.Context, ev Event, deadline time.Time, todo work[Tx]) (res Result, cause error, failure *Error) {
	if todo.record != nil {
		ctx, cancel := background(ctx, deadline)
		defer cancel()
		res, failure = r.record(ctx, ev, todo.record)
		return res, nil, failure
	}
	key := eventKey{ev.Scope, ev.ID}
	if !r.working.enter(key) {
		return "", nil, fail(ReasonInWork, errors.New("the same event is being applied right now"))
	}
	defer r.working.leave(key)
	ctx, cancel := background(ctx, deadline)
	defer cancel()

	// All that the transactions change is in one struct: their functions escape, so each
	// variable would be an allocation of its own.
	t := struct {
		ev      Event
		version int64
		apply   HandlerFunc[Tx]
		res     Result
	}{ev: ev, version: ev.Version, apply: todo.apply}
	if todo.thin != nil {
		t.version, t.apply, failure = r.prepare(ctx, ev, todo.thin)
	}
	run := func() *Error {
		return r.transact(ctx, func(tx Tx) (err *Error) {
			if t.res, err = r.applyTx(ctx, tx, t.ev, t.version, t.apply); err == nil {
				err = todo.finish(ctx, tx)
			}
			return err
		})
	}
	if failure == nil {
		failure = run()
	}
	if thin := wantedState[Tx](failure); thin != nil {
		if t.version, t.apply, failure = r.fetch(ctx, ev, thin); failure == nil {
			failure = run()
		}
	}
	if isIgnored(failure) {
		if todo.then != nil {
			failure = r.transact(ctx, func(tx Tx) *Error { return todo.finish(ctx, tx) })
			if failure != nil {
				return "", nil, failure
			}
		}
		return Ignored, nil, nil
	}
	if failure == nil || r.deadLetters == nil || !isPermanent(failure) {
		return t.res, nil, failure
	}
	cause = failure.Err
	res, failure = r.setAside(ctx, ev, cause, todo)
	return res, cause, failure
}

// applyTx takes the marker before the version, as all users of a store do: transactions
// that lock in the same order do not deadlock.
func (r *Receiver[Tx]) applyTx(ctx context.Context, tx Tx, ev Event, version int64, apply HandlerFunc[Tx]) (Result, *Error) {
	fresh, newer, err := r.mark(ctx, tx, ev, version)
	switch {
	case err != nil:
		return "", failDB(ctx, ReasonDatabase, err)
	case !fresh:
		return Duplicate, nil
	}
	return r.applyIf(ctx, tx, newer, ev, apply)
}

// mark takes the marker alone of an event that has no version: nothing can be newer.
func (r *Receiver[Tx]) mark(ctx context.Context, tx Tx, ev Event, version int64) (fresh, newer bool, err error) {
	if !versioned(ev, version) {
		fresh, err = r.store.Mark(ctx, tx, ev.Scope, ev.ID, r.cfg.Now())
		return fresh, fresh, err
	}
	return dedup.MarkAndAdvance(ctx, r.store, tx, ev.Scope, ev.ID, r.cfg.Now(), ev.Object, version)
}

func versioned(ev Event, version int64) bool {
	return version != 0 && ev.Object != (dedup.Object{})
}

func (r *Receiver[Tx]) advanceTx(ctx context.Context, tx Tx, ev Event, version int64, apply HandlerFunc[Tx]) (Result, *Error) {
	if !versioned(ev, version) {
		return r.applyIf(ctx, tx, true, ev, apply)
	}
	newer, err := r.store.Advance(ctx, tx, ev.Scope, ev.Object, version)
	if err != nil {
		return "", failDB(ctx, ReasonDatabase, err)
	}
	return r.applyIf(ctx, tx, newer, ev, apply)
}

func (r *Receiver[Tx]) applyIf(ctx context.Context, tx Tx, newer bool, ev Event, apply HandlerFunc[Tx]) (Result, *Error) {
	if !newer {
		return Stale, nil
	}
	if err := apply(ctx, tx, ev); err != nil {
		reason := ReasonApply
		if errors.Is(err, ErrUnknownType) {
			reason = ReasonUnknownType
		}
		return "", failApply(ctx, reason, err)
	}
	return Applied, nil
}

// failApply looks at the database's error before the application's wrapping: a
// serialization failure that is wrapped in Permanent is not permanent.
func failApply(ctx context.Context, rest Reason, err error) *Error {
	switch {
	case ctx.Err() == nil && calledPermanent(err):
		return fail(rest, err)
	case dberr.Classify(err) == dberr.Unavailable:
		rest = ReasonDatabase
	}
	return failDB(ctx, rest, err)
}

// wantedState is what has to be fetched before the event can be applied, or nil.
func wantedState[Tx any](failure *Error) ThinFunc[Tx] {
	if failure == nil || failure.Reason != ReasonApply { // nearly always
		return nil
	}
	if wanted, ok := errors.AsType[*stateWanted[Tx]](failure.Err); ok {
		return wanted.thin
	}
	return nil
}

func isIgnored(failure *Error) bool {
	return failure != nil && failure.Reason == ReasonUnknownType && errors.Is(failure.Err, errIgnored)
}
