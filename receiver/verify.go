package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// incoming is a request. Its body is there, or still to be read from a connection.
type incoming struct {
	method   string
	url      string
	header   http.Header
	size     int64 // as declared, or -1
	deadline time.Time
	body     []byte
	conn     *connection // nil: the body is there
}

// verify goes through the steps up to a decoded event. The cheap ones come first, and
// every check of the header comes before the body is read.
//
// answer is the answer to a question of the sender's, which is no event.
func (r *Receiver[Tx]) verify(ctx context.Context, in incoming) (ev Event, answer Result, failure *Error) {
	if in.method != http.MethodPost {
		return ev, "", fail(ReasonMethod, errors.New("the method is not POST"))
	}
	if in.size > r.cfg.MaxBodyBytes {
		return ev, "", tooLarge(r.cfg.MaxBodyBytes)
	}
	if failure = r.cfg.Envelope.checkContent(in.header); failure != nil {
		return ev, "", failure
	}
	// A verifier and its schemes may be the application's own, and so may panic.
	if err := contain(func() error { return r.verifier.Precheck(in.header) }); err != nil {
		return ev, "", r.diagnose(fail(reasonOf(err), err), in, nil)
	}
	body := in.body
	if in.conn != nil {
		if body, failure = r.readBody(in.conn); failure != nil {
			return ev, "", failure
		}
	}
	verified, facts, scope, err := r.checkSignature(ctx, in, body)
	if err != nil {
		return ev, "", r.diagnose(fail(reasonOf(err), err), in, body)
	}
	if r.cfg.Envelope == nil {
		ev, answer, failure = readOwn(body, verified)
	} else {
		ev, answer, failure = r.cfg.Envelope.read(body, facts)
	}
	if failure != nil {
		return Event{}, "", failure
	}
	ev.Verified = verified
	ev.Attempt = attemptOf(in.header)
	if ev.Scope = scope; scope == "" {
		ev.Scope, failure = r.scopeOf(verified)
	}
	return ev, answer, failure
}

// readOwn reads an event, or a challenge, of this module's own form.
func readOwn(body []byte, verified signing.Verified) (Event, Result, *Error) {
	ev, err := decode(body)
	if err != nil {
		return ev, "", fail(ReasonDecode, fmt.Errorf("%w; the events of a sender that does not use this module need Config.Envelope", err))
	}
	if verified.ID != "" && verified.ID != ev.ID {
		return ev, "", fail(ReasonIDMismatch, errors.New("the signed id in the header is not the one in the body"))
	}
	if ev.Type != challengeType {
		return ev, "", nil
	}
	token, err := tokenOf(ev)
	if err != nil {
		return ev, "", fail(ReasonDecode, fmt.Errorf("a challenge's data: %w", err))
	}
	return ev, challengedPrefix + Result(`{"token":"`+token+`"}`), nil
}

func tooLarge(limit int64) *Error {
	return fail(ReasonTooLarge, fmt.Errorf("the body has more than %d bytes, the most that MaxBodyBytes allows", limit))
}

// reasonOf keeps faults of the request apart from failures here: a scheme that cannot
// find out is never a wrong signature, and never a right one.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, ErrLookup): // whatever the lookup's own error is
		return ReasonSecrets
	case isPanic(err):
		return ReasonPanic
	case errors.Is(err, signing.ErrMissingHeader), errors.Is(err, signing.ErrRepeatedHeader), errors.Is(err, signing.ErrMalformedHeader):
		return ReasonHeader
	case errors.Is(err, signing.ErrTimestampOutsideWindow):
		return ReasonWindow
	case errors.Is(err, signing.ErrSignatureMismatch), errors.Is(err, signing.ErrNoValidKey):
		return ReasonSignature
	default:
		return ReasonVerifier
	}
}

func (r *Receiver[Tx]) scopeOf(v signing.Verified) (string, *Error) {
	if r.cfg.ScopeOf == nil {
		return r.scope, nil
	}
	var scope string
	err := contain(func() error {
		scope = r.cfg.ScopeOf(v)
		return ident.Scope(scope)
	})
	if err != nil {
		return "", fail(ReasonScope, fmt.Errorf("ScopeOf for the key %q: %w", v.KeyID, err))
	}
	return scope, nil
}

// attemptOf returns 0 for anything that is not a number: nothing depends on it.
func attemptOf(h http.Header) int {
	n, err := strconv.ParseUint(h.Get("Webhook-Attempt"), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
