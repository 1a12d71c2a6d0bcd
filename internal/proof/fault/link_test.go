package fault_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trouble is the way in which a link misbehaves.
type trouble string

const (
	none   trouble = ""
	delays trouble = "delays" // each piece, by 30 ms
	drips  trouble = "drips"  // a byte every 2 ms
	hangs  trouble = "hangs"  // nothing passes, until the link is sound again
	cuts   trouble = "cuts"   // connections are closed, and new ones as well
	resets trouble = "resets" // likewise, with a reset
)

// link is a TCP proxy.
type link struct {
	addr, to string
	listener net.Listener

	mu      sync.Mutex
	trouble trouble
	changed chan struct{} // closed when trouble changes
	open    map[*net.TCPConn]bool
	done    sync.WaitGroup
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{addr: listener.Addr().String(), to: to, listener: listener, changed: make(chan struct{}), open: map[*net.TCPConn]bool{}}
	l.done.Go(l.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(cuts)
		l.done.Wait()
	})
	return l
}

// set changes the trouble, for present and for new connections.
func (l *link) set(what trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = what
	close(l.changed)
	l.changed = make(chan struct{})
	if what == cuts || what == resets {
		for c := range l.open {
			drop(c, what)
		}
	}
}

func (l *link) now() (trouble, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble, l.changed
}

func drop(c *net.TCPConn, how trouble) {
	if how == resets {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}

func (l *link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		from := c.(*net.TCPConn)
		l.mu.Lock()
		what := l.trouble
		l.mu.Unlock()
		if what == cuts || what == resets {
			drop(from, what)
			continue
		}
		other, err := net.Dial("tcp", l.to)
		if err != nil {
			drop(from, cuts)
			continue
		}
		to := other.(*net.TCPConn)
		l.mu.Lock()
		l.open[from], l.open[to] = true, true
		l.mu.Unlock()
		l.done.Go(func() { l.pass(from, to) })
		l.done.Go(func() { l.pass(to, from) })
	}
}

// pass copies until either end has closed.
func (l *link) pass(from, to *net.TCPConn) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, from)
		_ = from.Close()
		_ = to.Close()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.write(to, buf[:n]) || err != nil {
			return
		}
	}
}

func (l *link) write(to *net.TCPConn, b []byte) bool {
	for len(b) > 0 {
		what, changed := l.now()
		piece := len(b)
		switch what {
		case delays:
			time.Sleep(30 * time.Millisecond)
		case drips:
			time.Sleep(2 * time.Millisecond)
			piece = 1
		case hangs:
			<-changed
			continue
		}
		if _, err := to.Write(b[:piece]); err != nil {
			return false
		}
		b = b[piece:]
	}
	return true
}
