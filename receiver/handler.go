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
	conn := connect(w, req, r.cfg.Timeout)
	res, err := r.pass(req.Context(), incoming{
		method:   req.Method,
		url:      targetOf(req),
		header:   req.Header,
		size:     req.ContentLength,
		deadline: conn.deadline,
		conn:     &conn,
	}, todo)
	conn.leave()
	if err != nil && aborted(err) {
		panic(http.ErrAbortHandler)
	}
	return res, err
}

// targetOf is what the client asked for, which middleware may have changed in the URL. A server
// sets it. A test or an adapter that has made its request by http.NewRequest does not.
func targetOf(req *http.Request) string {
	if req.RequestURI == "" && req.URL != nil {
		return req.URL.RequestURI()
	}
	return req.RequestURI
}

// connection is where the body of a request comes from.
type connection struct {
	w        http.ResponseWriter
	req      *http.Request
	deadline time.Time // of the request as a whole
	readBy   time.Time
	arrived  bool // the body, whole
}

func connect(w http.ResponseWriter, req *http.Request, timeout time.Duration) connection {
	start := time.Now()
	deadline := start.Add(timeout)
	return connection{w: w, req: req, deadline: deadline, readBy: readDeadline(req.Context(), start, deadline), arrived: req.ContentLength == 0}
}

// leave sees to it that the answer does not wait for a body that nobody will read. On HTTP/1
// the server would otherwise read on, without a limit of time, to keep the connection.
func (c *connection) leave() {
	if c.arrived || c.req.ProtoMajor != 1 {
		return
	}
	c.w.Header().Set("Connection", "close")
	_ = http.NewResponseController(c.w).SetReadDeadline(c.readBy)
}

func aborted(err error) bool {
	var p *panicError
	return errors.As(err, &p) && p.value == http.ErrAbortHandler //nolint:errorlint // net/http compares what is panicked with, too
}
