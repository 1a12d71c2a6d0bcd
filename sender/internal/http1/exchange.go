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
	// longBody is more than a server may leave unread, which answers before it has read all,
	// without the writing being held up: less the system's buffers take.
	longBody = 32 << 10
	// A body that is whole at the server is so here as soon as its writer has been told.
	writtenWithin = 50 * time.Millisecond
)

// exchange is a request and its answer, whose body it is.
type exchange struct {
	client *Client
	conn   *conn
	ctx    context.Context
	stop   func() bool   // ends what waits for the end of ctx; nil: nothing does
	wrote  chan error    // what became of a request that is written beside; nil: it was before
	body   io.ReadCloser // as net/http reads it
	keep   bool          // the connection can be used again, once all is read
	ended  error         // what Read returns since the exchange has ended
}

// make makes the exchange, up to the answer's body.
func (x *exchange) make(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	var failed error
	if r.ContentLength < 0 || r.ContentLength > longBody {
		x.wrote = make(chan error, 1)
		go func() {
			err := x.conn.write(r)
			if err != nil && !unread(err) {
				x.conn.abort() // no answer will come
			}
			x.wrote <- err
		}()
	} else if failed = x.conn.write(r); failed != nil && !unread(failed) {
		return nil, failed
	}
	// Who has closed while it was written may have said why.
	answer, err := x.conn.read(r, x.client.MaxHeader, trace)
	if err != nil {
		if x.wrote != nil {
			x.conn.cut()
			failed = <-x.wrote
		}
		if failed != nil && !errors.Is(failed, net.ErrClosed) && !isAlert(err) {
			err = failed
		}
		return nil, err
	}
	x.conn.promised = promise(answer.Header)
	x.keep = failed == nil && !answer.Close && !r.Close && answer.StatusCode != http.StatusSwitchingProtocols
	if answer.Body == http.NoBody {
		x.end(io.EOF)
		return answer, nil
	}
	x.body, answer.Body = answer.Body, x
	return answer, nil
}

// Read implements io.Reader.
func (x *exchange) Read(p []byte) (int, error) {
	if x.ended != nil {
		return 0, x.ended
	}
	n, err := x.body.Read(p)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = x.why(err)
		}
		x.end(err)
	}
	return n, err
}

// Close implements io.Closer. What is left of the body is not read.
func (x *exchange) Close() error {
	x.end(http.ErrBodyReadAfterClose)
	return nil
}

// end gives the connection back if the answer was read to its end, io.EOF, or closes it.
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
	if x.stop != nil && !x.stop() { // the connection is being aborted
		keep = false
	}
	if keep {
		x.conn.used = true
		x.client.put(x.conn)
	} else {
		x.conn.cut()
	}
}

// why is the end of the context, if that is why something failed, or ErrClosedIdle with
// what has shown it.
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
