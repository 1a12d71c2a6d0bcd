package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

func newBody(b []byte) io.Reader { return bytes.NewReader(b) }

// receiving is the application's database behind an endpoint, of any transaction type.
type receiving interface {
	// handler returns the handler that the application mounts.
	handler(e *endpoint, v *signing.Verifier) (http.Handler, error)
	// stored reads the rows of an event.
	stored(e *endpoint, ev *event) (storedEvent, error)
}

// storedEvent has an application's rows of an event.
type storedEvent struct {
	marked  bool
	version int64 // of its object
	effects int
}

// dedupStore has the methods that all stores of dedup share.
type dedupStore[Tx any] interface {
	dedup.Store[Tx]
	dedup.DeadLetters[Tx]
}

// application is a receiving.
type application[Tx any] struct {
	store dedupStore[Tx]
	inTx  receiver.InTx[Tx]
	// The application's own effects: nil if its database has only markers.
	effect  func(ctx context.Context, tx Tx, scope, event string) error
	effects func(ctx context.Context, tx Tx, scope, event string) (int, error)
}

func (a *application[Tx]) handler(e *endpoint, v *signing.Verifier) (http.Handler, error) {
	in := func(ctx context.Context, fn func(Tx) error) error { return a.transaction(ctx, e, fn) }
	rcv, err := receiver.New(v, in, dedup.Store[Tx](&markers[Tx]{a.store, e}), e.s.name, &receiver.Config{
		Now: e.clock, Logger: quiet, NoDiagnosis: true, Retention: 60 * 24 * time.Hour, Timeout: time.Hour,
	})
	if err != nil {
		return nil, err
	}
	return rcv.Handler(receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error { return a.apply(ctx, tx, e, ev) })), nil
}

// transaction runs a receiver's transaction, with its faults.
func (a *application[Tx]) transaction(ctx context.Context, e *endpoint, fn func(Tx) error) error {
	w := e.s.w
	if w.fault(lostBegin) {
		return errAway
	}
	mend := w.mayBreak(brokenWork)
	defer mend() // also if the handler panics
	e.applied.begin()
	err := a.inTx(ctx, func(tx Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if w.fault(lostCommit) {
			return errAway
		}
		return nil
	})
	if broke, committed := mend(); broke && err != nil {
		w.say("%s loses its database, committed: %v", e.s.name, committed)
		if committed {
			e.committed()
		}
		return err
	}
	if err != nil {
		return err
	}
	e.committed()
	if w.fault(unknownCommit) {
		return errUnknown
	}
	return nil
}

// apply is the application's handler. Its effect is in the transaction.
func (a *application[Tx]) apply(ctx context.Context, tx Tx, e *endpoint, ev receiver.Event) error {
	w := e.s.w
	if w.fault(handlerError) {
		return errHandler
	}
	e.effect(ev)
	if a.effect != nil {
		if err := a.effect(ctx, tx, e.s.name, ev.ID); err != nil {
			return err
		}
	}
	switch { // the changes must be rolled back
	case w.fault(handlerError):
		return errHandler
	case w.fault(handlerPanic):
		panic("simulation: the handler panics")
	case w.fault(handlerPermanent):
		return receiver.Permanent(errHandler)
	}
	return nil
}

func (a *application[Tx]) stored(e *endpoint, ev *event) (s storedEvent, err error) {
	w := e.s.w
	undone := a.inTx(w.ctx, func(tx Tx) error {
		var fresh bool
		if fresh, err = a.store.Mark(w.ctx, tx, e.s.name, ev.id, w.now); err != nil {
			return err
		}
		s.marked = !fresh
		if s.version, err = a.store.Version(w.ctx, tx, e.s.name, ev.object); err != nil {
			return err
		}
		if a.effects != nil {
			if s.effects, err = a.effects(w.ctx, tx, e.s.name, ev.id); err != nil {
				return err
			}
		} else if e.ends[ev.id] == effected { // it is its own record
			s.effects = 1
		}
		return errRolledBack
	})
	if err == nil && !errors.Is(undone, errRolledBack) {
		err = errors.Join(errNotUndone, undone)
	}
	return s, err
}

var errNotUndone = errors.New("simulation: a transaction was not rolled back")

// markers is the receiver's store. It notes the receiver's changes in a transaction for
// the endpoint's own record.
type markers[Tx any] struct {
	dedupStore[Tx]
	e *endpoint
}

func (m *markers[Tx]) Mark(ctx context.Context, tx Tx, scope, id string, at time.Time) (bool, error) {
	fresh, err := m.dedupStore.Mark(ctx, tx, scope, id, at)
	if err == nil {
		m.e.marked(id, fresh)
	}
	return fresh, err
}

func (m *markers[Tx]) Advance(ctx context.Context, tx Tx, scope string, o dedup.Object, version int64) (bool, error) {
	newer, err := m.dedupStore.Advance(ctx, tx, scope, o, version)
	if err == nil {
		m.e.advanced(o, version, newer)
	}
	return newer, err
}

// MarkAndAdvance is one call if the store has it.
func (m *markers[Tx]) MarkAndAdvance(ctx context.Context, tx Tx, scope, id string, at time.Time, o dedup.Object, version int64) (fresh, newer bool, err error) {
	fresh, newer, err = dedup.MarkAndAdvance[Tx](ctx, m.dedupStore, tx, scope, id, at, o, version)
	if err == nil {
		m.e.marked(id, fresh)
		if fresh {
			m.e.advanced(o, version, newer)
		}
	}
	return fresh, newer, err
}

func (m *markers[Tx]) SetAside(ctx context.Context, tx Tx, letter dedup.DeadLetter) error {
	err := m.dedupStore.SetAside(ctx, tx, letter)
	if err == nil {
		m.e.setAside(letter.ID)
	}
	return err
}

// answering keeps the receiver's answer.
type answering struct {
	e      *endpoint
	header http.Header
	status int
}

func (a *answering) Header() http.Header { return a.header }

func (a *answering) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		a.e.checkAnswer(status)
	}
}

func (a *answering) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return len(b), nil
}

// SetReadDeadline is for http.ResponseController: the body is there already.
func (*answering) SetReadDeadline(time.Time) error { return nil }
