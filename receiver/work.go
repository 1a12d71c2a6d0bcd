package receiver

import (
	"context"
	"errors"
)

// Work is what an application does with its events. The application says whether an event
// is a state or a fact: nothing is guessed from its type or its data. [State], [Fact] and
// [Thin] make the Work of one function for all types. [Router] gives each type a function
// of its own. A Work is immutable and may be used by several receivers at once.
//
// Events overtake each other: a sender's retries run beside its newer events. States and
// facts differ in what an overtaken event is worth:
//
//   - A state replaces all older states of its object. "The order is now paid" with the
//     whole order in it is one. If the newer state came first, the older one is skipped.
//   - A fact counts whatever came before or after it. A payment, a mail to be sent and a
//     row that only this event inserts are facts. None of them is skipped.
//
// If an application inserts a row at order.created and changes it at order.paid, these
// events are not states: the handler of an overtaken order.created would never run. Either
// each event carries the whole order, and its handler inserts or updates the row (State),
// or each handler does what does not depend on the other (Fact).
//
// The zero Work does nothing, and is refused; see [Work.Check].
type Work[Tx any] struct {
	all    task[Tx]    // for every type, if there are no routes
	routes *router[Tx] // of a Router; nil otherwise
}

// State makes a Work whose events are states: h is to bring the object that the event is
// about to the event's state. The marker and the object's version are committed with what
// h does. If the object's stored version is at least the event's, the event is marked and
// acknowledged as [Stale], and h does not run.
//
// An event without a version, which only an [Envelope] lets through, has a marker alone.
func State[Tx any](h HandlerFunc[Tx]) Work[Tx] {
	return Work[Tx]{all: task[Tx]{kind: stateTask, apply: h}}
}

// Fact makes a Work whose events each count once, whatever their order: h runs for every
// event whose marker is fresh. The object's version is neither read nor moved.
//
// So the marker alone stops a repetition, and markers are kept for Config.Retention. A
// fact that occurred longer ago, less the 300 s by which clocks may differ, may have been
// applied before its marker was removed. It is never applied: it is set aside as a dead
// letter with that reason, and [Receiver.ApplyDeadLetter] applies it if it is known to be
// new. If the store keeps no dead letters, it is refused with [ReasonTooOld].
//
// An event that does not say when it occurred, which events of this module always do,
// cannot be judged. It is applied if its marker is fresh. A repetition that comes after
// the Retention then has a second effect. So the Retention must exceed the time for which
// anybody can send it again. A scheme whose signatures cover a time bounds that.
func Fact[Tx any](h HandlerFunc[Tx]) Work[Tx] {
	return Work[Tx]{all: task[Tx]{kind: factTask, apply: h}}
}

// Check returns nil if the work can be done. Otherwise its error says that a function is
// missing. Every method that takes a Work checks it.
func (w Work[Tx]) Check() error {
	if w.routes != nil { // NewRouter has checked each of them
		return nil
	}
	return w.all.check()
}

func (w Work[Tx]) find(eventType string) task[Tx] {
	if w.routes != nil {
		return w.routes.find(eventType)
	}
	return w.all
}

// task is the part of a Work that is for one event.
type task[Tx any] struct {
	kind    taskKind
	apply   HandlerFunc[Tx]
	fetch   fetchFunc[Tx] // of a thinTask
	refusal error         // of a refuseTask
}

type taskKind uint8

const (
	noTask     taskKind = iota
	stateTask           // the marker and the version
	factTask            // the marker alone
	thinTask            // as a state, whose function and version fetch returns
	ignoreTask          // nothing is stored
	refuseTask          // no route matches, and the router does not ignore that
)

var errNoFunction = errors.New("receiver: the Work has no function: make it with State, Fact, Thin or Router, of functions that are not nil")

func (t task[Tx]) check() error {
	switch {
	case t.kind == noTask,
		t.apply == nil && (t.kind == stateTask || t.kind == factTask),
		t.fetch == nil && t.kind == thinTask:
		return errNoFunction
	}
	return nil
}

// order is what one call of the receiver is to do: a Work, or a record.
type order[Tx any] struct {
	work   Work[Tx]
	record RecordFunc[Tx]
	aside  error                                  // keep the event with this cause, and apply nothing
	then   func(ctx context.Context, tx Tx) error // nil, but of a Trusted
}
