package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/internal/http1"
)

// ErrReset: the server has ended or refused the request's stream or connection before
// its answer was whole.
var ErrReset = errors.New("http2: the server ended the stream")

// ErrRefused: the server has said that it has not processed the request (RFC 9113, section
// 8.7): it has refused the stream, or ended the connection before it.
var ErrRefused = errors.New("http2: the server refused the request, and has not processed it")

// ErrLongRequest: the server takes no headers as long as the request's, and has got none.
var ErrLongRequest = errors.New("http2: the request's headers are longer than the server takes")

// errUnsent: nothing of the request was sent, since its connection takes no more streams.
var errUnsent = fmt.Errorf("%w: nothing was sent", ErrRefused)

// endsWithin is the time for an exchange to end once its context has.
const endsWithin = time.Second

// exchange is a request and its answer. It is the answer's body.
type exchange struct {
	client *Client
	conn   *conn
	reused bool // the connection has had an answer before
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{} // closed at the end
	stop   func() bool   // keeps cutLate from being called
	sent   *sentBody     // nil: the request has none
	body   io.ReadCloser
	ended  error // the error of Read once the exchange has ended
}

// sentBody is a request's body. net/http closes it when no more of it is sent, and, if all of
// it was sent, when the answer has ended, too.
type sentBody struct {
	io.ReadCloser
	end chan struct{}
	do  sync.Once
}

// Close implements io.Closer.
func (s *sentBody) Close() error {
	s.wrote(httptrace.WroteRequestInfo{})
	return s.ReadCloser.Close()
}

// wrote is for httptrace.ClientTrace.WroteRequest.
func (s *sentBody) wrote(httptrace.WroteRequestInfo) { s.do.Do(func() { close(s.end) }) }

// cutLate closes the connection if the exchange goes on after its context has ended. While
// a server reads nothing, net/http waits for it in reading and closing an answer, whatever
// the context says: it wants to write that it has read, or that the stream has ended.
func (x *exchange) cutLate() {
	late := time.NewTimer(endsWithin)
	defer late.Stop()
	select {
	case <-x.over:
	case <-late.C:
		_ = x.conn.network.Close() // this does not wait for a write under way
	}
}

func (x *exchange) make(r *http.Request) (*http.Response, error) {
	x.over = make(chan struct{})
	x.stop = context.AfterFunc(x.ctx, x.cutLate)
	if r.Body != nil {
		x.sent = &sentBody{ReadCloser: r.Body, end: make(chan struct{})}
		r = r.WithContext(httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{WroteRequest: x.sent.wrote}))
		r.Body = x.sent
	}
	answer, err := x.conn.RoundTrip(r)
	if err != nil {
		err = x.whyNone(err)
		x.end(err)
		return nil, err
	}
	x.client.answered(x.conn)
	x.body, answer.Body = answer.Body, x
	return answer, nil
}

// Read implements io.Reader.
func (x *exchange) Read(p []byte) (int, error) {
	if x.ended != nil {
		return 0, x.ended
	}
	n, err := x.take(p)
	switch {
	case errors.Is(err, io.EOF):
		err = x.whole()
	case err != nil:
		err = x.why(err)
	}
	if err != nil {
		x.end(err)
	}
	return n, err
}

func (x *exchange) take(p []byte) (int, error) {
	n, err := x.body.Read(p)
	x.conn.network.took(n)
	return n, err
}

// Taken waits until the server has the whole request, or wants no more of it. It is for a
// caller that wants no more of the answer: up to http1.MaxDiscarded of the rest are discarded
// meanwhile. An error matches http1.ErrNotTaken. Afterwards the body is closed.
func (x *exchange) Taken() error {
	if x.ended != nil {
		return nil
	}
	discarded := make(chan struct{})
	go func() {
		defer close(discarded)
		rest := make([]byte, 4<<10)
		for total := 0; total < http1.MaxDiscarded; {
			n, err := x.take(rest)
			if err != nil {
				return
			}
			total += n
		}
	}()
	err := x.whole()
	_ = x.Close()
	<-discarded
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// whole waits until the server has the rest of the request, or wants no more: it may have
// answered before it has read. To end the stream then would leave it with a part of what it
// has promised to take. net/http sends no more after an answer that is no success.
func (x *exchange) whole() error {
	if x.sent == nil {
		return io.EOF
	}
	select {
	case <-x.sent.end:
		return io.EOF
	case <-x.ctx.Done():
		return fmt.Errorf("%w: %w", http1.ErrNotTaken, x.ctx.Err())
	}
}

// Close implements io.Closer. It does not read the rest of the body, but ends the
// stream.
func (x *exchange) Close() error {
	x.end(http.ErrBodyReadAfterClose)
	return nil
}

// end ends the exchange. If an answer did not come in time the connection may be dead,
// and is not used again. If an answer was not read to its end the connection is as good
// as before.
func (x *exchange) end(err error) {
	if x.ended != nil {
		return
	}
	x.ended = err
	if x.body != nil {
		_ = x.body.Close()
	}
	close(x.over)
	x.stop()
	x.cancel()
	x.client.put(x.conn, errors.Is(err, io.EOF) || errors.Is(err, http.ErrBodyReadAfterClose))
}

// why returns the context's error if the context has ended, or one of the errors that
// RoundTrip documents, with its cause.
func (x *exchange) why(err error) error {
	if ended := x.ctx.Err(); ended != nil {
		return ended
	}
	switch {
	case says(err, "response header list larger", "COMPRESSION_ERROR"): // a single one that is too long
		return fmt.Errorf("%w: %w", http1.ErrHeader, err)
	case connectionEnded(err), says(err, "received from peer"): // of the one stream
		return fmt.Errorf("%w: %w", ErrReset, err)
	}
	return err
}

// whyNone is why for an exchange without an answer.
func (x *exchange) whyNone(err error) error {
	switch {
	case x.ctx.Err() != nil:
	case says(err, "request header list larger"):
		return fmt.Errorf("%w: %w", ErrLongRequest, err)
	case says(err, "conn not usable"):
		return fmt.Errorf("%w: %w", errUnsent, err)
	case says(err, "REFUSED_STREAM", "graceful shutdown GOAWAY"): // of a stream that the GOAWAY excludes
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case x.reused && connectionEnded(err):
		return fmt.Errorf("%w: %w", http1.ErrClosedIdle, err)
	}
	return x.why(err)
}

func connectionEnded(err error) bool {
	return http1.ClosedByPeer(err) || says(err, "GOAWAY", "conn is closed", "could not be established", "connection lost")
}

// says reports whether an error's text contains one of some phrases. net/http's errors
// of HTTP/2 have neither exported names nor exported types. What the server has written into
// a GOAWAY stands at the end of a text, and does not count: a request that it has read would
// pass for one that was not sent.
func says(err error, any ...string) bool {
	text, _, _ := strings.Cut(err.Error(), ", debug=")
	for _, s := range any {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
