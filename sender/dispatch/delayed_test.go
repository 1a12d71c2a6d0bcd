//go:build linux

package dispatch_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// delayed listens and passes everything on to an address, with a delay in each direction,
// as a long line does. It passes on the close of a side too.
func delayed(t *testing.T, listen, to string, by time.Duration) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	require.NoError(t, err)
	var (
		mu      sync.Mutex
		open    []net.Conn
		serving sync.WaitGroup
	)
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, c)
	}
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			keep(near)
			serving.Go(func() {
				far, err := net.Dial("tcp", to)
				if err != nil {
					_ = near.Close()
					return
				}
				keep(far)
				var both sync.WaitGroup
				both.Go(func() { carry(far, near, by) })
				carry(near, far, by)
				both.Wait()
				_ = near.Close()
				_ = far.Close()
			})
		}
	})
	return l.Addr().String()
}

// carry passes on the bytes from one side, and their end.
func carry(to, from net.Conn, by time.Duration) {
	type parcel struct {
		due  time.Time
		data []byte // nil: the end
	}
	line := make(chan parcel, 1024)
	go func() {
		defer close(line)
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if n > 0 {
				line <- parcel{time.Now().Add(by), data[:n]}
			}
			if err != nil {
				line <- parcel{due: time.Now().Add(by)}
				return
			}
		}
	}()
	for p := range line {
		time.Sleep(time.Until(p.due))
		if p.data == nil {
			_ = to.(*net.TCPConn).CloseWrite()
		} else if _, err := to.Write(p.data); err != nil {
			_ = from.Close() // the other side has closed
		}
	}
}
