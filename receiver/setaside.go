package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/ident"
)

// ErrNotKept: [Receiver.SetAside] cannot keep the event as a dead letter, and a
// repetition cannot either. The event has no id that a marker could have, or the store is
// no dedup.DeadLetters.
var ErrNotKept = errors.New("receiver: the event cannot be kept as a dead letter")

// SetAside marks an event as seen and keeps it as a dead letter beside the markers, with
// cause's text as its reason, without applying it. It is for an event that is given up, or
// that [Receiver.Apply] refuses for good ([Error.Permanent]) because it is too large or
// does not decode. The errors inside cause decide nothing. Trusted.Then is committed with
// it.
//
// w is the Work that would apply the event; its functions are not called. A duplicate is
// answered with [Duplicate], a state that was overtaken with [Stale], and an event that w
// ignores with [Ignored]: none of them becomes a dead letter. An event that does not
// decode is always kept, unless it is a duplicate.
//
// Nothing of the body needs to be readable but its id, and not even that if Trusted.ID is
// given. The id must be there once and in its form, so that no other reader of the same
// bytes can take it for another one. An event that cannot be kept is an error that
// matches [ErrNotKept], and nothing was changed.
//
// The error is always an [*Error]. ctx ending does not end the work: Trusted.Timeout does.
func (r *Receiver[Tx]) SetAside(ctx context.Context, t Trusted[Tx], w Work[Tx], cause error) (Result, error) {
	ctx = r.begin(ctx, nil)
	ev, decoded, failure := r.toSetAside(t)
	if failure == nil && cause == nil {
		failure = fail(ReasonApply, errors.New("the cause is nil: it must say why the event is set aside"))
	}
	if failure != nil {
		r.rejected(ctx, failure)
		return "", failure
	}
	if !decoded { // its type says nothing
		w = Work[Tx]{all: task[Tx]{kind: refuseTask}}
	}
	res, _, failure := r.take(ctx, ev, r.deadlineOf(t), order[Tx]{
		work: w, then: t.Then, aside: Permanent(errors.New(cause.Error())),
	})
	if failure != nil {
		r.failed(ctx, ev, failure)
		return "", failure
	}
	r.taken(ctx, ev, res, cause)
	return res, nil
}

// toSetAside returns all that is known about an event that may not be readable.
func (r *Receiver[Tx]) toSetAside(t Trusted[Tx]) (ev Event, decoded bool, failure *Error) {
	if r.deadLetters == nil {
		return Event{}, false, fail(ReasonDatabase, fmt.Errorf("%w: the store keeps none", ErrNotKept))
	}
	scope, failure := r.trustedScope(t.Scope)
	if failure != nil {
		return Event{}, false, failure
	}
	ev, failure = r.decodeAgain(t.Body, t.ID, t.Type)
	if decoded = failure == nil; !decoded {
		ev = Event{Body: t.Body, ID: t.ID, Type: t.Type}
		r.identify(&ev)
	}
	ev.Scope = scope
	if err := ident.EventID(ev.ID); err != nil {
		return Event{}, false, fail(ReasonDecode, fmt.Errorf("%w: %w", ErrNotKept, err))
	}
	if ident.Type(ev.Type) != nil {
		ev.Type = Untyped
	}
	return ev, decoded, nil
}

// identify finds the id and the type in a body that does not decode, unless they are
// known.
func (r *Receiver[Tx]) identify(ev *Event) {
	if ev.ID != "" {
		return
	}
	if r.cfg.Envelope == nil {
		ev.ID, ev.Type = onlyText(ev.Body, "id"), onlyText(ev.Body, "type")
		return
	}
	if f, failure := r.bodyFacts(ev.Body); failure == nil && f.ID != "" {
		ev.ID, ev.Type = eventID(f), cmp.Or(ev.Type, eventType(f.Type))
	}
}

// onlyText is the text of a JSON object's member, or empty if there is none, or another
// one of that name in any case.
func onlyText(body []byte, name string) (value string) {
	found := 0
	err := validObject(body, func(raw, member []byte) error {
		switch n, err := text(raw); {
		case err != nil || !strings.EqualFold(n, name):
		default:
			if found++; n == name {
				value, _ = text(member)
			}
		}
		return nil
	})
	if err != nil || found != 1 {
		return ""
	}
	return value
}
