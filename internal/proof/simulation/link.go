package simulation

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/surehook/surehook/sender/dispatch"
)

// breaker is a Database whose connections can break on demand.
type breaker interface {
	// breakAt makes the connection of the next call break when it sends for the n-th time:
	// either before it sends, or when the answer is complete and has not arrived.
	breakAt(n int, answered bool)
	// mend ends this. It returns whether a connection broke, and whether the lost answer
	// had a commit.
	mend() (broke, committed bool)
	// leases returns all leases, by event and subscription.
	leases(ctx context.Context) ([]dispatch.Claimed, error)
}

// receivers is a Database that has databases for receivers, too.
type receivers interface {
	receiving() receiving
}

// sends bounds the messages of a call within which a connection breaks.
const sends = 10

// mayBreak draws whether the connection of the next call breaks. mend ends that, and
// may be called again.
func (w *world) mayBreak(k kind) (mend func() (broke, committed bool)) {
	if w.links == nil || !w.fault(k) {
		return func() (bool, bool) { return false, false }
	}
	w.links.breakAt(w.rand.IntN(sends), w.rand.IntN(2) == 0)
	return sync.OnceValues(w.links.mend)
}

var errBroken = errors.New("simulation: the connection breaks")

// links are the connections to a PostgreSQL server. A break is real: the server has
// ended the connection's transaction before the client notices.
type links struct {
	mu        sync.Mutex
	armed     bool
	left      int // messages until it breaks
	answered  bool
	broke     bool
	committed bool
}

func (l *links) breakAt(n int, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed, l.left, l.answered = true, n, answered
}

func (l *links) mend() (broke, committed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	broke, committed = l.broke, l.committed
	l.armed, l.broke, l.committed = false, false, false
	return broke, committed
}

// breaks counts the messages, and returns whether to break now.
func (l *links) breaks() (now, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed {
		return false, false
	}
	if l.left--; l.left >= 0 {
		return false, false
	}
	l.armed, l.broke = false, true
	return true, l.answered
}

// link is a connection. It can break only while it is in use: not while it is opened,
// and not if it cancels another connection's call.
type link struct {
	net.Conn
	of *links

	mu     sync.Mutex
	inUse  bool
	losing *answerReader // the answer is lost
	told   string        // the time that it was given last
}

func (l *link) use(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse = is
}

func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inUse && works(b) {
		switch now, answered := l.of.breaks(); {
		case now && !answered:
			l.shut()
			return 0, errBroken
		case now:
			l.losing = &answerReader{}
		}
	}
	return l.Conn.Write(b)
}

// works tells whether what is sent has the server run anything. What only prepares statements,
// or forgets them, does not count. How much of it there is depends on which connections are
// idle, and the pool's own goroutine changes their order half a second after each break.
// Neither does the farewell of a connection that broke before, which another goroutine sends.
func works(b []byte) bool {
	for len(b) >= messageHead {
		switch b[0] {
		case 'P', 'D', 'C', 'S', 'H', 'X': // Parse, Describe, Close, Sync, Flush and Terminate
		default:
			return true
		}
		b = b[min(1+int(binary.BigEndian.Uint32(b[1:messageHead])), len(b)):]
	}
	return false
}

func (l *link) Read(b []byte) (int, error) {
	for {
		n, err := l.Conn.Read(b)
		l.mu.Lock()
		losing := l.losing
		l.mu.Unlock()
		if losing == nil || err != nil {
			return n, err
		}
		if losing.whole(b[:n]) {
			l.of.mu.Lock()
			l.of.committed = losing.committed
			l.of.mu.Unlock()
			l.shut()
			return 0, errBroken
		}
	}
}

// shut closes the connection, and waits until its server process is gone, with all its
// locks.
func (l *link) shut() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, l.Conn) // to its end
	}
	_ = l.Conn.Close()
}

// messageHead is the size of a message's letter and length. The length counts itself, and not
// the letter: postgresql.org/docs/current/protocol-message-formats.html.
const messageHead = 5

// answerReader reads an answer of the server: messages of a letter, a length and a
// body, the last one being ReadyForQuery.
type answerReader struct {
	left      []byte
	committed bool
}

func (r *answerReader) whole(b []byte) bool {
	r.left = append(r.left, b...)
	for len(r.left) >= messageHead {
		size := 1 + int(binary.BigEndian.Uint32(r.left[1:messageHead]))
		if len(r.left) < size {
			return false
		}
		kind, body := r.left[0], r.left[messageHead:size]
		if kind == 'C' && string(body) == "COMMIT\x00" {
			r.committed = true
		}
		if r.left = r.left[size:]; kind == 'Z' {
			return true
		}
	}
	return false
}
