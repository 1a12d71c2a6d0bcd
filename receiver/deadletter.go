package receiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

// Permanent marks a HandlerFunc's error as one that no repetition can mend. The
// transaction is rolled back. A second one marks the event as seen and keeps it as a dead
// letter beside the markers, with the error's text as its reason. The request is answered
// with 200, so that the sender stops. The object's version is not advanced.
// [Receiver.ApplyDeadLetter] applies it again.
//
// With a store that is no dedup.DeadLetters, Permanent changes nothing: the error is
// answered with 500 like any other. It changes nothing either if the time is over, or if
// the error has a database's code for a transaction that lost against another one or for
// a database that is away. An error of another service does not count as such, even if
// its words are similar. Under [Receiver.WrapState] and [Receiver.WrapFact] there is no
// error to mark. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

// calledPermanent reports whether the application says so, and no database contradicts.
func calledPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p) && !errors.Is(err, dedup.ErrRetryTx) && dberr.Stated(err) == dberr.Other
}

func isPermanent(e *Error) bool {
	return (e.Reason == ReasonApply || e.Reason == ReasonFetch || e.Reason == ReasonUnknownType) && calledPermanent(e.Err)
}

func (r *Receiver[Tx]) setAside(ctx context.Context, ev Event, cause error, todo order[Tx]) (res Result, failure *Error) {
	failure = r.transact(ctx, func(tx Tx) (err *Error) {
		if res, err = r.setAsideTx(ctx, tx, ev, cause); err == nil {
			err = todo.finish(ctx, tx)
		}
		return err
	})
	return res, failure
}

func (r *Receiver[Tx]) setAsideTx(ctx context.Context, tx Tx, ev Event, cause error) (Result, *Error) {
	at := r.cfg.Now()
	fresh, err := r.store.Mark(ctx, tx, ev.Scope, ev.ID, at)
	if err != nil {
		return "", failDB(ctx, ReasonDatabase, err)
	}
	if !fresh { // it is to be applied again, and cannot be
		if fresh, _, err = r.takeAgain(ctx, tx, ev, 0, factTask); err != nil {
			return "", failDB(ctx, ReasonDatabase, err)
		}
	}
	if !fresh {
		// It was kept before, or another process has taken it between two transactions.
		return Duplicate, nil
	}
	return r.keepTx(ctx, tx, ev, cause, at)
}

// keepTx puts the event beside its marker, which tx has taken.
func (r *Receiver[Tx]) keepTx(ctx context.Context, tx Tx, ev Event, cause error, at time.Time) (Result, *Error) {
	letter := dedup.DeadLetter{Scope: ev.Scope, ID: ev.ID, Type: ev.Type, Body: ev.Body, Reason: cause.Error(), At: at}
	if ev.Version != 0 {
		letter.Object, letter.Version = ev.Object, ev.Version
	}
	if err := r.deadLetters.SetAside(ctx, tx, letter); err != nil {
		return "", failDB(ctx, ReasonDatabase, err)
	}
	return DeadLettered, nil
}

// ApplyDeadLetter applies the dead letter of the event id in scope again: its removal,
// the object's version and the work are committed together. If w takes the event as a
// state, and a newer one was stored meanwhile, it answers [Stale]: then the
// dead letter is removed, and no function runs. A fact is applied whatever its version
// and its age. On any error the dead letter stays. It also stays if w is a [Router] that
// ignores the event: the result is then [Ignored].
//
// The event that the function gets has no Verified: it was verified when it arrived. The
// error matches dedup.ErrNotFound if there is no such dead letter, and is an [*Error]
// otherwise. ctx ending does not end the work: Config.Timeout does.
func (r *Receiver[Tx]) ApplyDeadLetter(ctx context.Context, scope, id string, w Work[Tx]) (Result, error) {
	if r.deadLetters == nil {
		return "", fail(ReasonDatabase, errors.New("the store keeps no dead letters"))
	}
	if err := w.Check(); err != nil {
		return "", fail(ReasonApply, err)
	}
	key := eventKey{scope, id}
	if !r.working.enter(key) {
		return "", fail(ReasonInWork, errors.New("the same event is being applied right now"))
	}
	defer r.working.leave(key)
	ctx, cancel := background(ctx, time.Now().Add(r.cfg.Timeout))
	defer cancel()
	res, failure := r.revive(ctx, scope, id, w)
	switch {
	case failure == nil:
		return res, nil
	case failure.Reason == ReasonDatabase && errors.Is(failure, dedup.ErrNotFound): // and not one of w
		return "", failure.Err
	default:
		return "", failure
	}
}

// revive learns the event's type from the dead letter. So only a thin event needs a second
// transaction: it is fetched between the two.
func (r *Receiver[Tx]) revive(ctx context.Context, scope, id string, w Work[Tx]) (res Result, failure *Error) {
	var (
		ev      Event
		t       task[Tx]
		version int64
		fetched HandlerFunc[Tx]
	)
	run := func() *Error {
		return r.transact(ctx, func(tx Tx) (failure *Error) {
			if ev, failure = r.readLetter(ctx, tx, scope, id); failure != nil {
				return failure
			}
			switch t = w.find(ev.Type); {
			case t.kind == ignoreTask:
				res = Ignored
				return nil
			case t.kind == refuseTask:
				return fail(ReasonUnknownType, t.refusal)
			case t.kind == thinTask && fetched == nil:
				return nil
			case t.kind == thinTask:
				t.apply = fetched
			default:
				version = ev.Version
			}
			if err := r.deadLetters.Discard(ctx, tx, scope, id); err != nil {
				return failDB(ctx, ReasonDatabase, err)
			}
			res, failure = r.applyMarked(ctx, tx, ev, version, t)
			return failure
		})
	}
	if failure = run(); failure != nil || t.kind != thinTask {
		return res, failure
	}
	if version, fetched, failure = r.fetch(ctx, ev, t.fetch); failure != nil {
		return "", failure
	}
	failure = run()
	return res, failure
}

func (r *Receiver[Tx]) readLetter(ctx context.Context, tx Tx, scope, id string) (Event, *Error) {
	letter, err := r.deadLetters.DeadLetter(ctx, tx, scope, id)
	if err != nil {
		return Event{}, failDB(ctx, ReasonDatabase, err)
	}
	ev, failure := r.decodeAgain(letter.Body, letter.ID, letter.Type)
	if failure != nil {
		return Event{}, fail(failure.Reason, fmt.Errorf("the dead letter's body: %w", failure.Err))
	}
	ev.Scope = scope
	return ev, nil
}
