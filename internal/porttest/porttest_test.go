package porttest_test

import (
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
)

func refuses(t *testing.T, address string) {
	t.Helper()
	_, err := net.Dial("tcp", address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// listen accepts one connection at an address, and ends.
func listen(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	taken, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, taken.Close()) // first, as a server that is stopped: its side lingers
	require.NoError(t, l.Close())
	require.NoError(t, conn.Close())
}

// A server can listen on a reserved port, and again once it has ended.
func TestReserved(t *testing.T) {
	at := porttest.Reserved(t)
	for range 3 {
		refuses(t, at)
		listen(t, at)
	}
	refuses(t, at)
}

func TestRefusing(t *testing.T) {
	at := porttest.Refusing(t)
	refuses(t, at)
	_, err := net.Listen("tcp", at)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	refuses(t, at)
}

func TestListen(t *testing.T) {
	l := porttest.Listen(t)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, l.Close())
	refuses(t, l.Addr().String())
}

// Many ports are held, and listeners and clients ask for many more: the system would
// give them some of the held ones.
func TestHeldIsGivenToNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("a reserved port is not held here")
		return
	}
	held := map[string]bool{}
	for range 200 {
		closed := porttest.Listen(t)
		require.NoError(t, closed.Close())
		held[porttest.Refusing(t)], held[porttest.Reserved(t)], held[closed.Addr().String()] = true, true, true
	}
	require.Equal(t, 600, len(held), "none twice")
	for range 2000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		require.False(t, held[l.Addr().String()] || held[conn.LocalAddr().String()], "%s, %s", l.Addr(), conn.LocalAddr())
		require.NoError(t, conn.(*net.TCPConn).SetLinger(0)) // or it would keep its port for a minute
		require.NoError(t, conn.Close())
		require.NoError(t, l.Close())
	}
	for at := range held {
		refuses(t, at)
	}
}
