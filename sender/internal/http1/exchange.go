package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

const (
	// longBody is the size above which a body is written on a goroutine of its own.
	// A server may answer before it has read the body; the system's buffers take a
	// smaller one even if the server never reads it.
	longBody = 32 << 10
	// writtenWithin is the time for the goroutine that has written a body to say
	// so, once the server has all of it.
	writtenWithin = 50 * time.Millisecond
	// MaxDiscarded is how much of an answer Taken takes, at the most, in bytes. A server that
	// goes on without an end has to wait then.
	MaxDiscarded = 1 << 20
)

// ErrNotTaken: the server has answered with success, and then did not take the rest of the
// request in time.
var ErrNotTaken = errors.New("http1: the server has answered, and did not take the whole request")

// exchange is a request and its answer. It is the answer's body.
type exchange struct {
	client *Client
	conn   *conn
	ctx    context.Context
	ending *ending       // what ctx ends, this exchange too; nil: it never ends
	nth    int           // its index there
	wrote  chan error    // the error of a request that another goroutine writes; nil: it is written already
	body   io.ReadCloser // below x
	sized  sized         // what body is, if the answer has a usual form
	keep   bool          // the connection can be used again, once all is read
	wanted bool          // the rest of the request is, by a server that has answered with success
	ended  error         // the error of Read once the exchange has ended
}

// make makes the exchange, up to the answer's body.
func (x *exchange) make(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	var failed error
	if r.ContentLength < 0 || r.ContentLength > longBody {
		x.wrote = make(chan error, 1)
		go func() {
			err := x.conn.write(r, trace)
			if err != nil && !unread(err) {
				x.conn.abort() // no answer will come
			}
			x.wrote <- err
		}()
	} else if failed = x.conn.write(r, trace); failed != nil && !unread(failed) {
		return nil, failed
	}
	// A server that closes the connection while the request is written may have
	// sent an answer that says why.
	answer, err := x.conn.read(r, x.client.MaxHeader, &x.sized, trace)
	if err != nil {
		if x.wrote != nil {
			x.conn.cut()
			failed = <-x.wrote
		}
		if _, told := Alert(err); failed != nil && !errors.Is(failed, net.ErrClosed) && !told {
			err = failed
		}
		return nil, err
	}
	if x.conn.used && x.wrote == nil && answer.Close && answer.StatusCode == http.StatusRequestTimeout {
		// Some servers say so as they close an idle connection (RFC 9110, section 15.5.9).
		x.client.surprised(x.conn)
		return nil, fmt.Errorf("%w: it answered %d", ErrClosedIdle, answer.StatusCode)
	}
	x.conn.promised = promise(answer.Header)
	x.keep = failed == nil && !answer.Close && !r.Close && answer.StatusCode != http.StatusSwitchingProtocols && !announcesBody(answer)
	x.wanted = x.wrote != nil && answer.StatusCode/100 == 2
	if answer.Body == http.NoBody && !x.wanted {
		x.end(io.EOF)
		return answer, nil
	}
	x.body, answer.Body = answer.Body, x
	return answer, nil
}

// announcesBody reports whether an answer that cannot have a body announces one. Some servers
// send it all the same, a moment after the headers. It would be taken for the beginning of
// the next request's answer.
func announcesBody(answer *http.Response) bool {
	if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusNotModified {
		return false
	}
	length := answer.Header["Content-Length"]
	return len(answer.TransferEncoding) > 0 || len(length) > 0 && length[0] != "0"
}

// Read implements io.Reader.
func (x *exchange) Read(p []byte) (int, error) {
	if x.ended != nil {
		return 0, x.ended
	}
	n, err := x.body.Read(p)
	switch {
	case x.wanted && errors.Is(err, io.EOF):
		err = x.sent()
	case err != nil && !errors.Is(err, io.EOF) && x.conn.failed != nil:
		err = x.conn.failed // net/http calls the part before it a malformed trailer
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = x.why(err)
		}
		x.end(err)
	}
	return n, err
}

// Taken waits until the server has the whole request. It is for a caller that wants no more of
// the answer: up to MaxDiscarded of the rest are discarded meanwhile, because the server may read
// on only when it is taken. The error matches ErrNotTaken, or is the context's. Afterwards the
// body can only be closed.
func (x *exchange) Taken() error {
	if !x.wanted || x.ended != nil {
		return nil
	}
	discarded := make(chan struct{})
	go func() {
		defer close(discarded)
		_, _ = io.CopyN(io.Discard, x.body, MaxDiscarded)
	}()
	err := x.sent()
	x.conn.abort()
	<-discarded
	if errors.Is(err, io.EOF) {
		return nil
	}
	return x.why(err)
}

// sent waits until the server has the rest of the request, or has closed the connection:
// then it wants no more. Servers may answer before they read. To close the connection then
// would leave them with a part of what they have promised to take.
func (x *exchange) sent() error {
	err := <-x.wrote
	x.wrote <- err // for end
	if err == nil || unread(err) {
		return io.EOF
	}
	return fmt.Errorf("%w: %w", ErrNotTaken, err)
}

// Close implements io.Closer. It does not read the rest of the body.
func (x *exchange) Close() error {
	x.end(http.ErrBodyReadAfterClose)
	return nil
}

// end gives the connection back if err is io.EOF, the end of the answer, and else
// closes it.
func (x *exchange) end(err error) {
	if x.ended != nil {
		return
	}
	x.ended = err
	keep := x.keep && errors.Is(err, io.EOF)
	if x.wrote != nil && keep {
		_ = x.conn.SetWriteDeadline(time.Now().Add(writtenWithin))
		keep = <-x.wrote == nil
	}
	if !x.client.endings.remove(x) { // its context has ended
		keep = false
	}
	if keep {
		x.conn.used = true
		x.client.put(x.conn)
	} else {
		x.conn.cut()
	}
}

// why returns the context's error if the context has ended, or ErrClosedIdle with its
// cause, or err.
func (x *exchange) why(err error) error {
	if ended := x.ctx.Err(); ended != nil {
		return ended
	}
	if x.conn.used && !x.conn.began && ClosedByPeer(err) {
		x.client.surprised(x.conn)
		return fmt.Errorf("%w: %w", ErrClosedIdle, err)
	}
	return err
}
