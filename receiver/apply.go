package receiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

// take is bring, and also tells of a function that ends its goroutine: nobody returns to whom
// it could be told otherwise.
//
//nolint:staticcheck // ST1008: cause is a part of the result and no failure
func (r *Receiver[Tx]) take(ctx context.Context, ev Event, deadline time.Time, todo order[Tx]) (res Result, cause error, failure *Error) {
	returned := false
	defer func() {
		if !returned {
			r.failed(ctx, ev, fail(ReasonPanic, errGoexit))
		}
	}()
	res, cause, failure = r.bring(ctx, ev, deadline, todo)
	returned = true
	return res, cause, failure
}

var errGoexit = errors.New("a function has ended its goroutine (runtime.Goexit, which a test's FailNow calls): it must return an error instead")

// bring brings a verified event to its end. cause is why it became a dead letter.
//
//nolint:staticcheck // ST1008: cause is a part of the result and no failure
func (r *Receiver[Tx]) bring(ctx context.Context, ev Event, deadline time.Time, todo order[Tx]) (res Result, cause error, failure *Error) {
	ctx, cancel := background(ctx, deadline)
	defer cancel()
	if todo.record != nil {
		res, failure = r.record(ctx, ev, todo.record)
		return res, nil, failure
	}
	r.missRun(ctx)
	asked := todo.work.find(ev.Type)
	if err := asked.check(); err != nil {
		return "", nil, fail(ReasonApply, err)
	}
	if asked.kind == ignoreTask {
		res, failure = r.ignore(ctx, todo)
		return res, nil, failure
	}
	key := eventKey{ev.Scope, ev.ID}
	if !r.working.enter(key) {
		return "", nil, fail(ReasonInWork, errors.New("the same event is being applied right now"))
	}
	defer r.working.leave(key)

	// All that the transactions change is in one struct: their functions escape, so each
	// variable would be an allocation of its own.
	t := struct {
		ev      Event
		task    task[Tx]
		version int64
		res     Result
		cause   error
	}{ev: ev, task: asked.aside(todo.aside), version: ev.Version}
	switch t.task.kind {
	case refuseTask:
		failure = fail(ReasonUnknownType, t.task.refusal)
	case thinTask:
		t.version, t.task.apply, failure = r.prepare(ctx, ev, t.task.fetch)
	}
	run := func() *Error {
		return r.transact(ctx, func(tx Tx) (err *Error) {
			if t.res, t.cause, err = r.applyTx(ctx, tx, t.ev, t.version, t.task); err == nil {
				err = todo.finish(ctx, tx)
			}
			return err
		})
	}
	if failure == nil {
		failure = run()
	}
	if isFetchFirst(failure) {
		if t.version, t.task.apply, failure = r.fetch(ctx, ev, t.task.fetch); failure == nil {
			failure = run()
		}
	}
	if failure == nil || r.deadLetters == nil || !isPermanent(failure) {
		return t.res, t.cause, failure
	}
	cause = failure.Err
	res, failure = r.setAside(ctx, ev, cause, todo)
	return res, cause, failure
}

// aside is the task of an event that is to be kept with this cause, unless it is nil. A
// state that was overtaken is not worth keeping. Every other event is.
func (t task[Tx]) aside(cause error) task[Tx] {
	switch {
	case cause == nil:
		return t
	case t.kind == stateTask || t.kind == thinTask:
		return task[Tx]{kind: stateTask, apply: func(context.Context, Tx, Event) error { return cause }}
	default:
		return task[Tx]{kind: refuseTask, refusal: cause}
	}
}

// ignore ends an event that no route wants.
func (r *Receiver[Tx]) ignore(ctx context.Context, todo order[Tx]) (Result, *Error) {
	if todo.then != nil {
		if failure := r.transact(ctx, func(tx Tx) *Error { return todo.finish(ctx, tx) }); failure != nil {
			return "", failure
		}
	}
	return Ignored, nil
}

// applyTx takes the marker before the version, as all users of a store do: transactions
// that lock in the same order do not deadlock.
//
//nolint:staticcheck // ST1008: cause is a part of the result and no failure
func (r *Receiver[Tx]) applyTx(ctx context.Context, tx Tx, ev Event, version int64, t task[Tx]) (res Result, cause error, failure *Error) {
	at := r.cfg.Now()
	again := false
	fresh, newer, err := r.mark(ctx, tx, ev, version, t.kind, at)
	if err == nil && !fresh {
		again, newer, err = r.takeAgain(ctx, tx, ev, version, t.kind)
	}
	switch {
	case err != nil:
		return "", nil, failDB(ctx, ReasonDatabase, err)
	case !fresh && !again:
		return Duplicate, nil, nil
	}
	if t.kind == factTask && fresh {
		if cause = r.tooOld(ev, at); cause != nil {
			res, failure = r.keepTooOld(ctx, tx, ev, cause, at)
			return res, cause, failure
		}
	}
	if res, failure = r.applyIf(ctx, tx, newer, ev, t.apply); again && res == Applied {
		res = Reapplied
	}
	return res, nil, failure
}

// mark takes the marker alone of a fact, and of an event that has no version: nothing can
// be newer.
func (r *Receiver[Tx]) mark(ctx context.Context, tx Tx, ev Event, version int64, kind taskKind, at time.Time) (fresh, newer bool, err error) {
	if kind == factTask || !versioned(ev, version) {
		fresh, err = r.store.Mark(ctx, tx, ev.Scope, ev.ID, at)
		return fresh, fresh, err
	}
	return dedup.MarkAndAdvance(ctx, r.store, tx, ev.Scope, ev.ID, at, ev.Object, version)
}

func versioned(ev Event, version int64) bool {
	return version != 0 && ev.Object != (dedup.Object{})
}

// clockDifference is by how much the sender's clock and ours may differ.
const clockDifference = 300 * time.Second

// tooOld is why a fact with a fresh marker cannot be told from a duplicate, or nil.
func (r *Receiver[Tx]) tooOld(ev Event, now time.Time) error {
	if ev.OccurredAt.IsZero() || now.Sub(ev.OccurredAt) <= r.cfg.Retention-clockDifference {
		return nil
	}
	return fmt.Errorf("the event occurred at %s, and markers are kept for %s: it may have been applied before its marker was removed; apply it by hand if it was not",
		ev.OccurredAt.UTC().Format(time.RFC3339), r.cfg.Retention)
}

// keepTooOld keeps the event beside the marker that was just taken.
func (r *Receiver[Tx]) keepTooOld(ctx context.Context, tx Tx, ev Event, cause error, at time.Time) (Result, *Error) {
	if r.deadLetters == nil {
		return "", fail(ReasonTooOld, cause)
	}
	return r.keepTx(ctx, tx, ev, cause, at)
}

// applyMarked is applyTx for an event whose marker is there.
func (r *Receiver[Tx]) applyMarked(ctx context.Context, tx Tx, ev Event, version int64, t task[Tx]) (Result, *Error) {
	newer := true
	if t.kind != factTask && versioned(ev, version) {
		var err error
		if newer, err = r.advanceMarked(ctx, tx, ev, version); err != nil {
			return "", failDB(ctx, ReasonDatabase, err)
		}
	}
	return r.applyIf(ctx, tx, newer, ev, t.apply)
}

func (r *Receiver[Tx]) applyIf(ctx context.Context, tx Tx, newer bool, ev Event, apply HandlerFunc[Tx]) (Result, *Error) {
	if !newer {
		return Stale, nil
	}
	if err := apply(ctx, tx, ev); err != nil {
		return "", failApply(ctx, ReasonApply, err)
	}
	return Applied, nil
}

// failApply looks at the database's error before the application's wrapping: a
// serialization failure that is wrapped in Permanent is not permanent.
func failApply(ctx context.Context, rest Reason, err error) *Error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(ReasonTimeout, fmt.Errorf("the handler did not end within Config.Timeout: %w", err))
	case ctx.Err() == nil && calledPermanent(err):
		return fail(rest, err)
	case dberr.Classify(err) == dberr.Unavailable:
		rest = ReasonDatabase
	}
	return failDB(ctx, rest, err)
}
