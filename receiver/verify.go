package receiver

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// incoming is a request whose body has not been read yet.
type incoming struct {
	method   string
	url      string
	header   http.Header
	size     int64 // as declared, or -1
	deadline time.Time
	read     func() ([]byte, *Error)
}

// verify goes through the steps up to a decoded event: the cheap ones first, and
// none that reads the body before all that the header can be refused for.
func (r *Receiver[Tx]) verify(ctx context.Context, in incoming) (Event, *Error) {
	if in.method != http.MethodPost {
		return Event{}, fail(ReasonMethod, errors.New("the method is not POST"))
	}
	if in.size > r.cfg.MaxBodyBytes {
		return Event{}, tooLarge(r.cfg.MaxBodyBytes)
	}
	if err := checkContent(in.header); err != nil {
		return Event{}, err
	}
	if err := r.verifier.Precheck(in.header); err != nil {
		return Event{}, r.diagnose(fail(reasonOf(err), err), in, nil)
	}
	body, failure := in.read()
	if failure != nil {
		return Event{}, failure
	}
	verified, scope, err := r.checkSignature(ctx, in, body)
	if err != nil {
		return Event{}, r.diagnose(fail(reasonOf(err), err), in, body)
	}
	ev, err := decode(body)
	if err != nil {
		return Event{}, fail(ReasonDecode, err)
	}
	if verified.ID != "" && verified.ID != ev.ID {
		return Event{}, fail(ReasonIDMismatch, errors.New("the signed id in the header is not the one in the body"))
	}
	ev.Verified = verified
	ev.Attempt = attemptOf(in.header)
	if ev.Scope = scope; scope == "" {
		ev.Scope, failure = r.scopeOf(verified)
	}
	return ev, failure
}

func tooLarge(limit int64) *Error {
	return fail(ReasonTooLarge, fmt.Errorf("the body has more than %d bytes, the most that MaxBodyBytes allows", limit))
}

// reasonOf keeps apart what the sender sent from what failed here: a scheme that
// cannot find out is never a wrong signature, and never a right one.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, ErrLookup): // whatever the lookup's own error is
		return ReasonSecrets
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

// checkContent accepts JSON as it is. A coding is refused because the signature
// covers the bytes on the wire, and undoing it could make a thousand times as
// many of them.
func checkContent(h http.Header) *Error {
	for _, coding := range h["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return fail(ReasonContentEncoding, errors.New("the body has a content encoding: it must be sent without one"))
		}
	}
	types := h["Content-Type"]
	if len(types) > 1 {
		return fail(ReasonHeader, errors.New("the Content-Type header is repeated"))
	}
	if len(types) == 1 {
		if types[0] == "application/json" {
			return nil
		}
		media, params, err := mime.ParseMediaType(types[0])
		if err == nil && media == "application/json" && (params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8")) {
			return nil
		}
	}
	return fail(ReasonContentType, errors.New("the content type must be application/json, in UTF-8"))
}

func (r *Receiver[Tx]) scopeOf(v signing.Verified) (string, *Error) {
	if r.cfg.ScopeOf == nil {
		return r.cfg.Scope, nil
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

// attemptOf is 0 for whatever is not a number: nothing depends on it.
func attemptOf(h http.Header) int {
	n, err := strconv.ParseUint(h.Get("Webhook-Attempt"), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
