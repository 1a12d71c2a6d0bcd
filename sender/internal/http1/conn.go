package http1

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"time"
)

// bufferSize is that of a connection's two buffers. A request that fits leaves with one
// write.
const bufferSize = 4 << 10

// conn is a connection that serves one exchange at a time.
type conn struct {
	net.Conn
	to        origin
	reader    *bufio.Reader
	writer    *bufio.Writer
	remaining int64       // how many more bytes may be read
	unchosen  bool        // its server has chosen no protocol in the TLS handshake
	used      bool        // an exchange was made on it
	began     bool        // the first byte of an answer has come
	failed    error       // error of reading, except the end
	broken    error       // error of writing
	abort     func()      // ends the exchange under way; it may be called at any time
	quiet     func() bool // see socketIsQuiet; nil: the system cannot tell
	layers    bool        // TLS is between the socket and the reader, and may have read ahead
	made      time.Time
	habit     *habit // its server's; guarded by the client

	// The pool's fields:
	promised      time.Duration // see promise
	since, until  time.Time     // when it began to wait, and how long it may wait
	older, newer  *conn         // of all
	before, after *conn         // of those to the same origin, the older and the newer one
}

func newConn(network net.Conn, to origin) *conn {
	below := bottom(network)
	cn := &conn{Conn: network, promised: noPromise, to: to, quiet: socketIsQuiet(below), layers: below != network, made: time.Now()}
	cn.reader, cn.writer = bufio.NewReaderSize(cn, bufferSize), bufio.NewWriterSize(cn, bufferSize)
	cn.abort = func() { _ = network.SetDeadline(time.Unix(1, 0)) }
	return cn
}

// Read reads no more than remaining allows. Its first error stays: a server that was refused a
// second TLS handshake sends another one, which says less.
func (cn *conn) Read(p []byte) (int, error) {
	if cn.failed != nil {
		return 0, cn.failed
	}
	if cn.remaining <= 0 {
		cn.failed = ErrHeader
		return 0, ErrHeader
	}
	if int64(len(p)) > cn.remaining {
		p = p[:cn.remaining]
	}
	n, err := cn.Conn.Read(p)
	cn.remaining -= int64(n)
	cn.began = cn.began || n > 0
	if err != nil && !errors.Is(err, io.EOF) {
		cn.failed = err
	}
	return n, err
}

// ErrHeader: the answer's headers are longer than Client.MaxHeader.
var ErrHeader = errors.New("http1: the answer's headers are too long")

// lookFor is how long alive reads from a connection on systems that cannot look at a
// socket without waiting.
const lookFor = time.Millisecond

// alive reports whether a request may be tried: the other side has neither closed the
// connection nor sent something unasked, which could be taken for the next request's
// answer. Records of TLS itself do not count. The caller must set the connection's
// deadline again.
//
// Unasked bytes can be in three places: in the reader, in the socket, and between them
// in TLS, which reads whole records ahead.
func (cn *conn) alive() bool {
	if cn.reader.Buffered() != 0 {
		return false
	}
	// The deadline of the exchange before may have passed, and then a socket cannot be
	// looked at.
	if cn.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	until := time.Unix(1, 0) // in the past: Peek sees the bytes that TLS holds, and does not read from the socket
	switch {
	case cn.quiet == nil || cn.layers && !cn.used: // a server sends tickets after the handshake
		until = time.Now().Add(lookFor)
	case !cn.quiet():
		return false
	case !cn.layers:
		return true
	}
	if cn.SetReadDeadline(until) != nil {
		return false
	}
	cn.remaining = 1
	_, err := cn.reader.Peek(1)
	cn.failed = nil
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// bottom is the connection below TLS. Through a proxy there may be two layers of TLS.
func bottom(network net.Conn) net.Conn {
	for {
		secure, ok := network.(interface{ NetConn() net.Conn })
		if !ok {
			return network
		}
		network = secure.NetConn()
	}
}

// cut closes the connection at once. TLS would send an alert first, and wait for
// seconds if the other side has stopped reading.
func (cn *conn) cut() { _ = bottom(cn.Conn).Close() }

// Write implements io.Writer.
func (cn *conn) Write(p []byte) (int, error) {
	n, err := cn.Conn.Write(p)
	if err != nil {
		cn.broken = err
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom, which bufio uses for bodies that are longer than
// its buffer.
func (cn *conn) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{cn}, r)
}

// write writes a request. A trace learns of it from net/http.
func (cn *conn) write(r *http.Request, trace *httptrace.ClientTrace) error {
	plain := false
	var err error
	if trace == nil {
		plain, err = cn.writePlain(r)
	}
	if !plain {
		err = r.Write(cn.writer)
	}
	if err == nil {
		err = cn.writer.Flush()
	}
	if cn.broken != nil { // net/http hides it, and says that the body could not be read
		return cn.broken
	}
	return err
}

// Interim reports whether an answer with a status precedes another one, which ends the
// exchange.
func Interim(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}

// read reads an answer up to its body. body is for one of a known length.
func (cn *conn) read(r *http.Request, most int64, body *sized, trace *httptrace.ClientTrace) (*http.Response, error) {
	cn.remaining, cn.began = most, false
	if trace != nil && trace.GotFirstResponseByte != nil {
		if _, err := cn.reader.Peek(1); err == nil {
			trace.GotFirstResponseByte()
		}
	}
	for {
		if answer := cn.readPlain(r, body); answer != nil {
			cn.remaining = math.MaxInt64
			return answer, nil
		}
		answer, err := http.ReadResponse(cn.reader, r)
		if err != nil && cn.failed != nil {
			return nil, cn.failed // the part before it looks like a malformed answer
		}
		if err != nil {
			return nil, err
		}
		if !Interim(answer.StatusCode) {
			cn.remaining = math.MaxInt64
			return answer, nil
		}
	}
}
