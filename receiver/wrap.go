package receiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// WrapState is middleware for a handler that takes all its events as states; see [State].
//
// next runs inside the transaction, gets the verified body to read, and finds the
// transaction and the event by [Receiver.From]. Its answer is held back until the commit.
// A 2xx status, or none, commits. Any other status rolls back and is then answered as next
// wrote it. So next decides what the sender does: most senders repeat on 5xx, and some
// give up on 4xx. If next writes nothing, the answer is Handler's. Events for which no
// function would run, such as duplicate and stale ones, are answered without next.
//
// A status does not say that the transaction lost against another one, as the error of a
// [HandlerFunc] does. So next is not run again when its statements fail for that, and the
// sender has to repeat. It is when the marker or the commit fails for that.
//
// next may write up to 64 KiB; more is an error of Write and answered with 500
// after a rollback. Flush, Hijack and deadlines are not available to it, and
// informational (1xx) statuses are dropped.
func (r *Receiver[Tx]) WrapState(next http.Handler) http.Handler {
	return r.wrap(stateTask, next)
}

// WrapFact is [Receiver.WrapState] for a handler that takes all its events as facts; see
// [Fact].
func (r *Receiver[Tx]) WrapFact(next http.Handler) http.Handler {
	return r.wrap(factTask, next)
}

func (r *Receiver[Tx]) wrap(kind taskKind, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.handshake(w, req) {
			return
		}
		var held heldAnswer
		apply := func(ctx context.Context, tx Tx, ev Event) error {
			// Each run of the transaction has an answer of its own.
			held = heldAnswer{header: make(http.Header)}
			inner := req.WithContext(context.WithValue(ctx, fromKey[Tx]{r}, from[Tx]{tx, ev}))
			inner.Body = io.NopCloser(bytes.NewReader(ev.Body))
			inner.ContentLength = int64(len(ev.Body))
			inner.TransferEncoding = nil
			next.ServeHTTP(&held, inner)
			return held.verdict()
		}
		res, err := r.serve(w, req, order[Tx]{work: Work[Tx]{all: task[Tx]{kind: kind, apply: apply}}})
		var refused statusError
		switch {
		case err == nil && (res == Applied || res == Reapplied) && held.status != 0,
			err != nil && err.Reason == ReasonApply && errors.As(err, &refused):
			held.write(w)
		default:
			r.writeAnswer(w, res, err)
		}
	})
}

// From returns the transaction and the event of a request under this receiver's
// [Receiver.WrapState] or [Receiver.WrapFact], and false anywhere else. Both are to be
// used by the handler only, and not after it has returned.
func (r *Receiver[Tx]) From(ctx context.Context) (tx Tx, ev Event, ok bool) {
	f, ok := ctx.Value(fromKey[Tx]{r}).(from[Tx])
	return f.tx, f.ev, ok
}

type fromKey[Tx any] struct{ r *Receiver[Tx] }

type from[Tx any] struct {
	tx Tx
	ev Event
}

// statusError is a handler's own status that is not 2xx.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("the handler answered %d", int(s)) }

var errAnswerTooLarge = fmt.Errorf("receiver: the handler wrote more than %d bytes", maxHeldAnswer)

const maxHeldAnswer = 64 << 10

// heldAnswer is the ResponseWriter of a wrapped handler.
type heldAnswer struct {
	header http.Header
	sent   http.Header // as it was at WriteHeader
	status int         // 0: nothing written
	body   []byte
	over   bool
}

func (h *heldAnswer) Header() http.Header { return h.header }

func (h *heldAnswer) WriteHeader(status int) {
	if h.status != 0 || status >= 100 && status < 200 {
		return
	}
	if status < 100 || status > 999 {
		status = http.StatusInternalServerError // net/http would panic
	}
	h.status, h.sent = status, h.header.Clone()
}

func (h *heldAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if len(h.body)+len(p) > maxHeldAnswer {
		h.over = true
		return 0, errAnswerTooLarge
	}
	h.body = append(h.body, p...)
	return len(p), nil
}

func (h *heldAnswer) verdict() error {
	switch {
	case h.over:
		return errAnswerTooLarge
	case h.status != 0 && h.status/100 != 2:
		return statusError(h.status)
	default:
		return nil
	}
}

func (h *heldAnswer) write(w http.ResponseWriter) {
	Answer{Status: h.status, Header: h.sent, Body: h.body}.write(w)
}
