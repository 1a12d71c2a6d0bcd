package sendertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Step is a receiver's reaction to one request. Steps are values: they can be used for
// several endpoints and repeated (slices.Repeat).
type Step struct {
	wait  time.Duration // before anything else, but after the request was recorded
	early bool          // the request's body is left unread
	bad   error         // why the step cannot be played

	// Exactly one of the two. reply's error is what a client would get.
	reply   func(ctx context.Context) (*http.Response, error)
	handler http.HandlerFunc

	raw func(ctx context.Context, conn net.Conn) // on a connection, in place of reply
}

func (s Step) check() error {
	if s.bad == nil && s.reply == nil && s.handler == nil {
		return errors.New("sendertest: a zero Step does nothing: make one with Status, Hang and the like")
	}
	return s.bad
}

// Status answers with the code and an empty body. The code must be from 200 to
// 599: others are not final answers.
func Status(code int) Step { return Answer(code, nil, "") }

// Answer answers with the code, the header (nil: none beyond the usual) and the
// body.
//
//	sendertest.Answer(429, http.Header{"Retry-After": {"120"}}, "slow down")
func Answer(code int, header http.Header, body string) Step {
	if code < 200 || code > 599 {
		return Step{bad: fmt.Errorf("sendertest: status %d: it must be from 200 to 599", code)}
	}
	return replying(func(context.Context) *http.Response {
		return newAnswer(code, header.Clone(), int64(len(body)), strings.NewReader(body))
	})
}

// Redirect answers with the code (301, 302, 303, 307 or 308) and the Location.
func Redirect(code int, location string) Step {
	return Answer(code, http.Header{"Location": {location}}, "")
}

// Func answers with a handler of your own, which finds the request's body
// unread. In process the answer is handed over when the handler has returned.
func Func(handler http.HandlerFunc) Step {
	if handler == nil {
		return Step{bad: errors.New("sendertest: Func needs a handler")}
	}
	return Step{handler: handler}
}

// Delay waits before it plays the step. The wait ends early if the client leaves or the
// endpoint is closed.
func Delay(d time.Duration, step Step) Step {
	step.wait += d
	return step
}

// Hang reads the request and never answers. It ends when the client leaves or
// the endpoint is closed.
func Hang() Step {
	return Step{reply: func(ctx context.Context) (*http.Response, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
}

// Drip sends the head of a 200 at once and then n bytes of body, one every
// interval.
func Drip(interval time.Duration, n int) Step {
	if n < 0 {
		return Step{bad: fmt.Errorf("sendertest: Drip of %d bytes: it must be 0 or more", n)}
	}
	return replying(func(ctx context.Context) *http.Response {
		return newAnswer(http.StatusOK, nil, int64(n), &dripReader{ctx, interval, n})
	})
}

// Endless sends a 200 whose body goes on as long as the client reads it.
func Endless() Step {
	return replying(func(context.Context) *http.Response {
		return newAnswer(http.StatusOK, nil, -1, endlessReader{})
	})
}

// HugeHeaders sends a 200 with at least size bytes of header fields of 1 KiB. A
// RoundTripper has no transport that would refuse them.
func HugeHeaders(size int) Step {
	return replying(func(context.Context) *http.Response {
		header, value := http.Header{}, strings.Repeat("h", 1<<10)
		for i := 0; i<<10 < size; i++ {
			header.Set(fmt.Sprintf("X-Huge-%d", i), value)
		}
		return newAnswer(http.StatusOK, header, 0, http.NoBody)
	})
}

func replying(make func(ctx context.Context) *http.Response) Step {
	return Step{reply: func(ctx context.Context) (*http.Response, error) { return make(ctx), nil }}
}

func newAnswer(code int, header http.Header, length int64, body io.Reader) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	// Both say that no body may follow: RFC 9110 sections 15.3.5 and 15.4.5.
	if code == http.StatusNoContent || code == http.StatusNotModified {
		length, body = 0, http.NoBody
	} else if length >= 0 && header.Get("Content-Length") == "" {
		header.Set("Content-Length", fmt.Sprint(length))
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", code, http.StatusText(code)),
		StatusCode: code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: length, Body: io.NopCloser(body),
	}
}

type dripReader struct {
	ctx      context.Context
	interval time.Duration
	left     int
}

func (d *dripReader) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := sleep(d.ctx, d.interval); err != nil {
		return 0, err
	}
	d.left--
	p[0] = '.'
	return 1, nil
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '.'
	}
	return len(p), nil
}

// sleep returns early, with ctx's cause, when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func withBody(r *http.Request, body []byte) *http.Request {
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}
