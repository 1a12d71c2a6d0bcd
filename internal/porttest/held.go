package porttest

import (
	"net"
	"runtime"
	"testing"
)

// Held is a port of 127.0.0.1 that is kept from others until it is closed.
type Held struct {
	// Address is its host and port.
	Address string
	socket  socket
}

// Reserve holds a port for a server, which can be started there repeatedly. While the
// server does not listen, connections are refused. The server must set SO_REUSEADDR, as
// those of Go and PostgreSQL do. On systems other than Linux that is not enough, so
// there the port is chosen and let go, and is only likely to be free.
func Reserve() (*Held, error) { return hold(true) }

// Close lets the port go.
func (h *Held) Close() error { return h.socket.close() }

// Reserved is the address of a port that is reserved until the test has ended: see
// [Reserve].
func Reserved(t testing.TB) (address string) {
	t.Helper()
	return until(t, true)
}

// Refusing is an address that refuses connections until the test has ended: nobody can
// listen there.
func Refusing(t testing.TB) (address string) {
	t.Helper()
	return until(t, false)
}

// Listen listens on a port that nobody else gets until the test has ended, so that it
// refuses connections once the listener is closed. On systems other than Linux others
// may get it from then on.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	address := "127.0.0.1:0"
	if runtime.GOOS == "linux" {
		address = Reserved(t)
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // it waits for nothing
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func until(t testing.TB, reusable bool) string {
	t.Helper()
	h, err := hold(reusable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("porttest: letting %s go: %v", h.Address, err)
		}
	})
	return h.Address
}
