package receiver

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/internal/dberr"
)

// work is what the application wants done with its events: one of the two.
type work[Tx any] struct {
	apply HandlerFunc[Tx]
	thin  ThinFunc[Tx]
}

// take brings a verified event to its end. cause is why it became a dead letter.
//
//nolint:staticcheck // ST1008: cause is a part of the result and no failure
func (r *Receiver[Tx]) take(ctx context.Context, ev Event, deadline time.Time, todo work[Tx]) (res Result, cause error, failure *Error) {
	key := eventKey{ev.Scope, ev.ID}
	if !r.working.enter(key) {
		return "", nil, fail(ReasonInWork, errors.New("the same event is being applied right now"))
	}
	defer r.working.leave(key)
	ctx, cancel := background(ctx, deadline)
	defer cancel()

	version, apply := ev.Version, todo.apply
	if todo.thin != nil {
		version, apply, failure = r.prepare(ctx, ev, todo.thin)
	}
	if failure == nil {
		failure = r.transact(ctx, func(tx Tx) (err *Error) {
			res, err = r.applyTx(ctx, tx, ev, version, apply)
			return err
		})
	}
	if failure == nil || r.deadLetters == nil || !isPermanent(failure) {
		return res, nil, failure
	}
	cause = failure.Err
	failure = r.transact(ctx, func(tx Tx) (err *Error) {
		res, err = r.setAsideTx(ctx, tx, ev, cause)
		return err
	})
	return res, cause, failure
}

// applyTx takes the marker before the version, as everybody does: transactions
// that lock in the same order do not deadlock.
func (r *Receiver[Tx]) applyTx(ctx context.Context, tx Tx, ev Event, version int64, apply HandlerFunc[Tx]) (Result, *Error) {
	fresh, err := r.store.Mark(ctx, tx, ev.Scope, ev.ID, r.cfg.Now())
	if err != nil {
		return "", failDB(ctx, ReasonDatabase, err)
	}
	if !fresh {
		return Duplicate, nil
	}
	return r.advanceTx(ctx, tx, ev, version, apply)
}

func (r *Receiver[Tx]) advanceTx(ctx context.Context, tx Tx, ev Event, version int64, apply HandlerFunc[Tx]) (Result, *Error) {
	newer, err := r.store.Advance(ctx, tx, ev.Scope, ev.Object, version)
	if err != nil {
		return "", failDB(ctx, ReasonDatabase, err)
	}
	if !newer {
		return Stale, nil
	}
	if err := apply(ctx, tx, ev); err != nil {
		return "", failApply(ctx, ReasonApply, err)
	}
	return Applied, nil
}

// failApply lets what the database says go before what the application makes of
// it: a serialization failure that is wrapped in Permanent is not permanent.
func failApply(ctx context.Context, rest Reason, err error) *Error {
	if dberr.Classify(err) == dberr.Unavailable {
		rest = ReasonDatabase
	}
	return failDB(ctx, rest, err)
}
