package http2

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"
)

// ErrTooMuch: the server has sent far more than answers. Its connection was closed.
var ErrTooMuch = errors.New("http2: the server sends far more than answers")

const (
	// frameCost is counted for each frame that a server sends, besides its bytes: there is
	// something to do for it. A PING of 17 bytes has to be answered.
	frameCost = 256
	// unknownCost is counted for a PRIORITY, and for one of a type that RFC 9113 does not have:
	// net/http writes a line to the log for each.
	unknownCost = 16 << 10
	// closesWithin is the time for TLS to end in good order.
	closesWithin = 250 * time.Millisecond
)

// A frame has a head of nine bytes: the length of the rest in three, and then the type
// (RFC 9113, section 4.1).
const (
	headSize     = 9
	typeAt       = 3
	priority     = 2 // section 6.3
	continuation = 9 // the last of the types (section 6.10)
)

// meter is a connection that bounds what its server can have net/http do, which reads
// whatever comes, and also while nobody waits for an answer.
type meter struct {
	*tls.Conn
	left atomic.Int64 // what may be read, in bytes

	// These describe the frame that is being read.
	head [headSize]byte
	have int // bytes of the head
	rest int // bytes that follow the head and were not read yet
}

// allowance is how much may be read for a stream: headers, trailers, and what is not taken
// of the body. More may be read as more is taken or sent. While there is no stream, as much
// may be read as for one.
func (c *Client) allowance() int64 { return 2 * (c.MaxHeader + maxUnread) }

// renew lets a connection's streams have their allowances anew. The client must be locked.
func (c *Client) renew(cn *conn) { cn.network.left.Store(int64(cn.streams+1) * c.allowance()) }

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.left.Load() <= 0 {
		return 0, ErrTooMuch
	}
	n, err := m.Conn.Read(p)
	m.left.Add(-m.cost(p[:n]))
	return n, err
}

// Write implements io.Writer. A server grants what a request's body may have by frames.
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.left.Add(int64(n))
	return n, err
}

// took lets more be read, since a part of an answer's body was taken.
func (m *meter) took(n int) { m.left.Add(2 * int64(n)) }

// cost follows the frames.
func (m *meter) cost(p []byte) int64 {
	cost := int64(len(p))
	for len(p) > 0 {
		if m.rest > 0 {
			n := min(m.rest, len(p))
			m.rest, p = m.rest-n, p[n:]
			continue
		}
		n := copy(m.head[m.have:], p)
		if m.have, p = m.have+n, p[n:]; m.have < headSize {
			break
		}
		m.have, m.rest = 0, int(binary.BigEndian.Uint32(m.head[:])>>8)
		cost += frameCost
		if kind := m.head[typeAt]; kind == priority || kind > continuation {
			cost += unknownCost
		}
	}
	return cost
}

// Close implements io.Closer. It does not wait long for a server that reads nothing.
func (m *meter) Close() error {
	t := time.AfterFunc(closesWithin, func() { _ = m.NetConn().Close() })
	defer t.Stop()
	return m.Conn.Close()
}
