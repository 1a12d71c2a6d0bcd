package sendertest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
)

// RoundTripper plays the same steps in process, for any host. It opens no
// connection, starts no goroutine and waits on nothing but timers and the
// request's context, so it works in testing/synctest bubbles, in virtual time.
// Make it inside the bubble if [RoundTripper.WaitFor] is used there. It is safe
// for concurrent use.
type RoundTripper struct{ script }

var _ http.RoundTripper = (*RoundTripper)(nil)

// NewRoundTripper makes a round tripper that plays the steps.
func NewRoundTripper(steps ...Step) *RoundTripper {
	return &RoundTripper{newScript(steps)}
}

// RoundTrip records the request and plays the next step. When the request's context
// ends, RoundTrip and the reading of the answer's body fail with the context's cause. A
// step that breaks the connection returns an error like net/http's: one that wraps
// syscall.ECONNRESET for [Reset], io.EOF for [CloseWithoutAnswer].
func (rt *RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ctx := r.Body, r.Context()
	if body == nil {
		body = http.NoBody
	}
	defer body.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	step := rt.take()
	if err := step.check(); err != nil {
		return nil, err
	}
	var posted []byte
	if !step.early {
		var err error
		if posted, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	rt.record(r, posted)

	if err := sleep(ctx, step.wait); err != nil {
		return nil, err
	}
	answer, err := step.inProcess(r, posted)
	if err != nil {
		return nil, err
	}
	answer.Request = r
	answer.Body = &cancelled{ctx, answer.Body}
	return answer, nil
}

func (s Step) inProcess(r *http.Request, posted []byte) (*http.Response, error) {
	if s.handler == nil {
		return s.reply(r.Context())
	}
	incoming := withBody(r, posted)
	incoming.RequestURI = r.URL.RequestURI()
	return play(s.handler, incoming)
}

// play runs the handler to its end. A handler that aborts its answer closes
// the connection, as in net/http.
func play(handler http.HandlerFunc, r *http.Request) (answer *http.Response, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			answer, err = nil, io.EOF
		default:
			panic(p)
		}
	}()
	rec := httptest.NewRecorder()
	handler(rec, r)
	return rec.Result(), nil
}

// cancelled is a body that can be read until the request's context ends.
type cancelled struct {
	ctx context.Context
	io.ReadCloser
}

func (c *cancelled) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.ReadCloser.Read(p)
}
