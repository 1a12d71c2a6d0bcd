package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// Trusted is an event that its sender did not post. It was read from the sender over a
// connection that vouches for it, so no signature covers it.
type Trusted[Tx any] struct {
	// Body is the event as it would have been posted. It must not be changed until
	// the call returns.
	Body []byte

	// Scope is the scope of the marker and the version. It must be the one under which
	// the sender's posts are taken, or each event has two effects: another one than the
	// receiver's own is refused.
	// Defaults to the receiver's own; with Config.ScopeOf or Secrets it must be given.
	Scope string

	// ID and Type are those with which the event was kept. If they are empty, the body
	// says them, and it must have an id. Without a Config.Envelope the body always says
	// them: an ID that differs is refused, and Type is ignored.
	ID, Type string

	// Timeout bounds the work, with all retries of the transaction. Nobody waits for an answer,
	// so it may be longer than that of a request.
	// Defaults to Config.Timeout.
	Timeout time.Duration

	// Then runs in the transaction that takes the event, after the event's own work, with
	// every result: applied, duplicate, stale or dead letter. For an ignored event it
	// runs in a transaction of its own. Its error rolls everything back. It may be nil.
	Then func(ctx context.Context, tx Tx) error
}

// Apply takes an event that needs no verification, through the same steps as
// [Receiver.Receive] from the decoding on. The marker and the version are the same, so
// that an event that was posted too has one effect. The caller vouches for the bytes.
//
// An error that is [Error.Permanent] comes again whenever the event does:
// [Receiver.SetAside] keeps such an event.
//
// The event that w gets has no Verified. The error is always an [*Error]. As with
// Handler, ctx ending does not end the work: Trusted.Timeout does.
func (r *Receiver[Tx]) Apply(ctx context.Context, t Trusted[Tx], w Work[Tx]) (Result, error) {
	res, err := r.passTrusted(ctx, t, order[Tx]{work: w, then: t.Then})
	if err != nil {
		return "", err
	}
	return res, nil
}

func (r *Receiver[Tx]) passTrusted(ctx context.Context, t Trusted[Tx], todo order[Tx]) (Result, *Error) {
	ctx = r.begin(ctx, nil)
	ev, err := r.decodeTrusted(t)
	if err != nil {
		r.rejected(ctx, err)
		return "", err
	}
	res, cause, err := r.take(ctx, ev, r.deadlineOf(t), todo)
	if err != nil {
		r.failed(ctx, ev, err)
		return "", err
	}
	r.taken(ctx, ev, res, cause)
	return res, nil
}

func (r *Receiver[Tx]) deadlineOf(t Trusted[Tx]) time.Time {
	return time.Now().Add(cmp.Or(t.Timeout, r.cfg.Timeout))
}

func (r *Receiver[Tx]) decodeTrusted(t Trusted[Tx]) (Event, *Error) {
	if int64(len(t.Body)) > r.cfg.MaxBodyBytes {
		return Event{}, tooLarge(r.cfg.MaxBodyBytes)
	}
	ev, failure := r.decodeAgain(t.Body, t.ID, t.Type)
	if failure != nil {
		return Event{}, failure
	}
	if ev.Type == challengeType && r.cfg.Envelope == nil {
		return Event{}, fail(ReasonDecode, errors.New("a challenge is for who is posted to: it is not an event"))
	}
	ev.Scope, failure = r.trustedScope(t.Scope)
	return ev, failure
}

func (r *Receiver[Tx]) trustedScope(scope string) (string, *Error) {
	scope, failure := r.scopeGiven("Trusted.Scope", scope)
	if failure == nil && r.scope != "" && scope != r.scope {
		return "", fail(ReasonScope, fmt.Errorf("Trusted.Scope is %q, and this receiver's is %q: give the event to the receiver of its sender", scope, r.scope))
	}
	return scope, failure
}

// scopeGiven is the scope that a caller gives in the field, or else the receiver's own.
func (r *Receiver[Tx]) scopeGiven(field, scope string) (string, *Error) {
	if scope == "" {
		_, secrets := r.verifier.(*Secrets)
		if r.cfg.ScopeOf != nil || secrets {
			return "", fail(ReasonScope, fmt.Errorf("%s is empty: it must be given where it depends on whose key verifies", field))
		}
		scope = r.scope
	}
	if err := ident.Scope(scope); err != nil {
		return "", fail(ReasonScope, fmt.Errorf("%s: %w", field, err))
	}
	return scope, nil
}

// decodeAgain reads an event without its request.
func (r *Receiver[Tx]) decodeAgain(body []byte, id, kind string) (Event, *Error) {
	if e := r.cfg.Envelope; e != nil {
		facts, failure := r.bodyFacts(body)
		if failure != nil {
			return Event{}, failure
		}
		return e.again(body, id, kind, facts)
	}
	ev, err := decode(body)
	if err != nil {
		return ev, fail(ReasonDecode, err)
	}
	if id != "" && id != ev.ID {
		return ev, fail(ReasonIDMismatch, errors.New("the id in the body is not the one by which the event was kept"))
	}
	return ev, nil
}

func (r *Receiver[Tx]) bodyFacts(body []byte) (f signing.Facts, failure *Error) {
	err := contain(func() error { // a scheme's own reader may miss the headers
		f = r.verifier.(FactVerifier).BodyFacts(body)
		return nil
	})
	if err != nil {
		return f, fail(ReasonPanic, fmt.Errorf("the verifier's BodyFacts: %w", err))
	}
	return f, nil
}

// finish is the last step of a transaction that takes an event.
func (o order[Tx]) finish(ctx context.Context, tx Tx) *Error {
	if o.then == nil {
		return nil
	}
	if err := o.then(ctx, tx); err != nil {
		return failDB(ctx, ReasonDatabase, err)
	}
	return nil
}
