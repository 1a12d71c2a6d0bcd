package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/surehook/surehook/dedup"
	dedupmemory "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
)

func newBody(b []byte) io.Reader { return bytes.NewReader(b) }

// inTx runs the receiver's transactions: the application's database, with what can
// befall it.
func (e *endpoint) inTx(ctx context.Context, fn func(*dedupmemory.Tx) error) error {
	w := e.s.w
	if w.fault(lostBegin) {
		return errAway
	}
	e.applied.begin()
	err := e.store.InTx(ctx, func(tx *dedupmemory.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if w.fault(lostCommit) {
			return errAway
		}
		return nil
	})
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
func (e *endpoint) apply(_ context.Context, _ *dedupmemory.Tx, ev receiver.Event) error {
	w := e.s.w
	if w.fault(handlerError) {
		return errHandler
	}
	e.effect(ev)
	switch { // what was done is to be undone
	case w.fault(handlerError):
		return errHandler
	case w.fault(handlerPanic):
		panic("simulation: the handler panics")
	case w.fault(handlerPermanent):
		return receiver.Permanent(errHandler)
	}
	return nil
}

// markers is the receiver's store. It notes what the receiver does in a transaction,
// of which the endpoint's own record is kept.
type markers struct {
	*dedupmemory.Store
	e *endpoint
}

func (m *markers) Mark(ctx context.Context, tx *dedupmemory.Tx, scope, id string, at time.Time) (bool, error) {
	fresh, err := m.Store.Mark(ctx, tx, scope, id, at)
	if err == nil {
		m.e.marked(id, fresh)
	}
	return fresh, err
}

func (m *markers) Advance(ctx context.Context, tx *dedupmemory.Tx, scope string, o dedup.Object, version int64) (bool, error) {
	newer, err := m.Store.Advance(ctx, tx, scope, o, version)
	if err == nil {
		m.e.advanced(o, version, newer)
	}
	return newer, err
}

// MarkAndAdvance hides what the store does in one step, so that both are noted.
func (m *markers) MarkAndAdvance(ctx context.Context, tx *dedupmemory.Tx, scope, id string, at time.Time, o dedup.Object, version int64) (fresh, newer bool, err error) {
	if fresh, err = m.Mark(ctx, tx, scope, id, at); err != nil || !fresh {
		return false, false, err
	}
	newer, err = m.Advance(ctx, tx, scope, o, version)
	return err == nil, newer, err
}

func (m *markers) SetAside(ctx context.Context, tx *dedupmemory.Tx, letter dedup.DeadLetter) error {
	err := m.Store.SetAside(ctx, tx, letter)
	if err == nil {
		m.e.setAside(letter.ID)
	}
	return err
}

// answering takes the receiver's answer.
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

var errNotThere = errors.New("simulation: it is not there")
