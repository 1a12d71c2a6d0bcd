package bedtest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
)

// Listen serves every connection to an address by a function, or refuses all if it is nil.
// stop waits until the last function has returned.
func Listen(t *testing.T, serve func(net.Conn)) (address string, stop func()) {
	t.Helper()
	if serve == nil {
		return porttest.Refusing(t), func() {}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	return l.Addr().String(), func() {
		_ = l.Close()
		serving.Wait()
	}
}
