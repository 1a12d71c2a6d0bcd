package receiver

import (
	"errors"
	"net/http"
	"time"
)

// Handler answers requests by applying their events with w. Like [Receiver.WrapState] it
// must come before any middleware that reads bodies. An event whose transaction has begun
// is applied to its end, even if the client leaves.
//
// A panic in a function of w is rolled back, logged and answered with 500, except
// http.ErrAbortHandler, which is passed on after the rollback.
func (r *Receiver[Tx]) Handler(w Work[Tx]) http.Handler {
	return r.handler(order[Tx]{work: w})
}

func (r *Receiver[Tx]) handler(todo order[Tx]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.handshake(w, req) {
			return
		}
		res, err := r.serve(w, req, todo)
		r.writeAnswer(w, res, err)
	})
}

// serve puts an HTTP request through the pipeline. It writes no answer. It makes sure
// that one can be written without waiting for a body that nobody will read.
func (r *Receiver[Tx]) serve(w http.ResponseWriter, req *http.Request, todo order[Tx]) (Result, *Error) {
	start := time.Now()
	deadline := start.Add(r.cfg.Timeout)
	conn := connection{w: w, req: req, readBy: readDeadline(req.Context(), start, deadline), arrived: req.ContentLength == 0}
	res, err := r.pass(req.Context(), incoming{
		method:   req.Method,
		url:      req.RequestURI,
		header:   req.Header,
		size:     req.ContentLength,
		deadline: deadline,
		conn:     &conn,
	}, todo)
	if !conn.arrived && req.ProtoMajor == 1 {
		// On HTTP/1 the server would otherwise read on, without a limit of time, to
		// keep the connection.
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(conn.readBy)
	}
	if err != nil && aborted(err) {
		panic(http.ErrAbortHandler)
	}
	return res, err
}

// connection is where the body of a request comes from.
type connection struct {
	w       http.ResponseWriter
	req     *http.Request
	readBy  time.Time
	arrived bool // the body, whole
}

func aborted(err error) bool {
	var p *panicError
	return errors.As(err, &p) && p.value == http.ErrAbortHandler //nolint:errorlint // net/http compares what is panicked with, too
}
