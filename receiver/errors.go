package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/surehook/surehook/signing"
)

// Reason says why a request was not answered with 200, in a word that suits a
// metric's label.
type Reason string

// The reasons, with the status that each is answered with.
const (
	ReasonMethod          Reason = "method"           // 405
	ReasonTooLarge        Reason = "too_large"        // 413, declared or read
	ReasonContentType     Reason = "content_type"     // 415
	ReasonContentEncoding Reason = "content_encoding" // 415
	ReasonHeader          Reason = "header"           // 400: missing, repeated or malformed
	ReasonWindow          Reason = "window"           // 401: the timestamp is too far from now
	ReasonTruncated       Reason = "truncated"        // 400: the body ended early
	ReasonSlow            Reason = "slow"             // 408: the body did not arrive in time
	ReasonSignature       Reason = "signature"        // 401: no valid key's signature
	ReasonDecode          Reason = "decode"           // 400: verified, but not an event
	ReasonIDMismatch      Reason = "id_mismatch"      // 400: the signed header, or what kept the event, names another id than the body

	// ReasonBodyConsumed: something in front of the receiver has read the body already,
	// so that the signed bytes are gone. The receiver must come before any code that
	// parses bodies. 500, because the sender did nothing wrong.
	ReasonBodyConsumed Reason = "body_consumed"
	ReasonVerifier     Reason = "verifier" // 503: a scheme failed in another way than by refusing
	ReasonSecrets      Reason = "secrets"  // 503: whose secret it must be could not be looked up
	ReasonScope        Reason = "scope"    // 500: ScopeOf gave none that is valid, or panicked

	ReasonInWork   Reason = "in_work"  // 503: the same event is being applied by this process
	ReasonDatabase Reason = "database" // 503: away, or no transaction could be begun in time, or the store failed
	ReasonConflict Reason = "conflict" // 503: serialization failures or locks, beyond the retries
	ReasonTimeout  Reason = "timeout"  // 503: Timeout passed before the commit
	ReasonCommit   Reason = "commit"   // 503: the commit failed, or nobody knows whether it did
	ReasonLagging  Reason = "lagging"  // 503: a thin event's source is behind the event
	ReasonFetch    Reason = "fetch"    // 503: a thin event's source failed

	ReasonUnknownType Reason = "unknown_type" // 501: no route matches, and the router refuses

	ReasonApply  Reason = "apply"   // 500: the function returned an error, or there is none
	ReasonTooOld Reason = "too_old" // 500: a fact that is older than markers are kept, and the store keeps no dead letters (see Fact)
	ReasonPanic  Reason = "panic"   // 500: the function panicked or ended its goroutine, or the verifier or the Envelope panicked
)

// Error says why an event was not taken. Nothing was changed, unless the reason is
// [ReasonCommit]: then the change is there as a whole or not at all, and sending the
// event again finds out.
type Error struct {
	Reason Reason
	Err    error // for the log: never written to the sender
	// Diagnosis says what is probably wrong with a request that was refused; nil if
	// nothing was found, or not looked for (see [Config.NoDiagnosis]). It is for the
	// log, too.
	Diagnosis []string
	// Tried has the keys that a signature was compared with which matches none of them
	// (ReasonSignature), so that their fingerprints can be compared with the sender's. It
	// is for the log, too. It is empty if the verifier does not say.
	Tried []signing.TriedKey
}

func (e *Error) Error() string {
	return fmt.Sprintf("receiver: %s: %v", e.Reason, e.Err)
}

// Unwrap gives the cause, so that errors.Is finds the sentinels of signing, of
// the store and of the application.
func (e *Error) Unwrap() error { return e.Err }

// Permanent reports whether the event itself is at fault, so that no repetition can mend
// it: it is too large, it does not decode, its signed id differs from the body's, it is
// older than markers are kept (see [Fact]), or the application says so (see the function
// [Permanent]). A database that is away, a conflict, the end of the time, a panic and any
// other error may be over the next time.
func (e *Error) Permanent() bool {
	switch e.Reason {
	case ReasonTooLarge, ReasonDecode, ReasonIDMismatch, ReasonTooOld:
		return true
	default:
		return isPermanent(e)
	}
}

// Status is the HTTP status that the error is answered with. Under [Receiver.WrapState] it is
// the handler's own.
func (e *Error) Status() int {
	switch e.Reason {
	case ReasonHeader, ReasonTruncated, ReasonDecode, ReasonIDMismatch:
		return http.StatusBadRequest
	case ReasonWindow, ReasonSignature:
		return http.StatusUnauthorized
	case ReasonMethod:
		return http.StatusMethodNotAllowed
	case ReasonSlow:
		return http.StatusRequestTimeout
	case ReasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case ReasonContentType, ReasonContentEncoding:
		return http.StatusUnsupportedMediaType
	case ReasonVerifier, ReasonSecrets, ReasonInWork, ReasonDatabase, ReasonConflict, ReasonTimeout, ReasonCommit, ReasonLagging, ReasonFetch:
		return http.StatusServiceUnavailable
	case ReasonUnknownType:
		return http.StatusNotImplemented
	default:
		var own statusError
		if e.Reason == ReasonApply && errors.As(e.Err, &own) {
			return int(own)
		}
		return http.StatusInternalServerError
	}
}

// RetryAfter is how long the sender is asked to wait, at every 503. It is 0 otherwise, and
// where a handler under [Receiver.WrapState] has chosen the status: its header says it.
func (e *Error) RetryAfter() time.Duration {
	if e.Status() == http.StatusServiceUnavailable && e.Reason != ReasonApply {
		return retryAfter
	}
	return 0
}

// It is short, since the cause of a 503 tends to be over soon, and a sender's own
// schedule is longer anyway.
const retryAfter = 5 * time.Second

func fail(reason Reason, err error) *Error {
	return &Error{Reason: reason, Err: err}
}

// panicError is a panic of the application's code, with its stack.
type panicError struct {
	value any
	stack []byte
}

// Error leaves the value's text out unless the runtime made it: the value of a program's
// own panic may contain an event.
func (p *panicError) Error() string {
	if e, ok := p.value.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("panic with a %T", p.value)
}
