package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

// impatient is a server that closes connections which are unused for some time. Its
// connections have no delay, so the client sees the end at once.
type impatient struct {
	closes time.Duration
	says   string // a header
	opened int
}

func (s *impatient) client(t *testing.T) *http1.Client {
	c := newClient(t)
	c.IdleTimeout, c.MaxAge = 30*time.Second, 5*time.Minute
	c.Dial = func(context.Context, string, string) (net.Conn, error) {
		s.opened++
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			for r := bufio.NewReader(there); ; {
				_ = there.SetReadDeadline(time.Now().Add(s.closes))
				if !takes(r) {
					return
				}
				_, _ = fmt.Fprintf(there, "HTTP/1.1 200 OK\r\n%sContent-Length: 4\r\n\r\nfine", s.says)
			}
		}()
		return here, nil
	}
	return c
}

// posts makes requests with gaps between them, and returns how many connections they
// took.
func (s *impatient) posts(t *testing.T, c http.RoundTripper, gaps ...time.Duration) int {
	t.Helper()
	before := s.opened
	for _, gap := range gaps {
		time.Sleep(gap)
		_, _, err := post(t.Context(), c, "http://example.com/", small)
		require.NoError(t, err)
		synctest.Wait() // until the server waits for the next one
	}
	return s.opened - before
}

func TestKeepAliveIsHeeded(t *testing.T) {
	for says, keeps := range map[string]time.Duration{
		"Keep-Alive: timeout=5\r\n":                                 4 * time.Second,
		"keep-alive: max=100 , Timeout=\"5\"\r\n":                   4 * time.Second,
		"Keep-Alive: timeout=20\r\nKeep-Alive: timeout=5\r\n":       4 * time.Second,
		"Keep-Alive: timeout=1\r\n":                                 500 * time.Millisecond,
		"Keep-Alive: timeout=3600\r\n":                              30 * time.Second,
		"":                                                          time.Second,
		"Keep-Alive: timeout=soon\r\n":                              time.Second,
		"Keep-Alive: timeout=-5\r\n":                                time.Second,
		"Keep-Alive: timeout=99999999999999999999, max=1\r\n":       time.Second,
		"Keep-Alive: 300\r\n":                                       time.Second,
		"Connection: keep-alive\r\nKeep-Alive: timeout=60, x=y\r\n": 30 * time.Second,
	} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &impatient{closes: time.Hour, says: says}
				c := s.client(t)
				require.Equal(t, 1, s.posts(t, c, 0, keeps-50*time.Millisecond), "used again while it is kept")
				require.Equal(t, 1, s.posts(t, c, keeps+50*time.Millisecond), "and not any more")
				c.CloseIdleConnections()
			})
		})
	}
}

// The client learns how long a server keeps a connection if the server does not say so.
func TestKeepAliveTimeIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &impatient{closes: 6 * time.Second}
		c := s.client(t)
		require.Equal(t, 1, s.posts(t, c, 0, 900*time.Millisecond))
		require.Equal(t, 1, s.posts(t, c, 3*time.Second), "not known yet")
		time.Sleep(4 * time.Second) // the first one is watched until it is closed
		require.Equal(t, 1, s.posts(t, c, 0, 4900*time.Millisecond), "known")
		require.Equal(t, 1, s.posts(t, c, 5100*time.Millisecond))

		// The time is shortened. The client finds a connection closed, does not
		// use it, and learns from it.
		s.closes = 2 * time.Second
		require.Zero(t, s.posts(t, c, 3*time.Second, time.Second), "the last one of before")
		require.Equal(t, 1, s.posts(t, c, 3*time.Second), "is found closed")
		require.Equal(t, 1, s.posts(t, c, 500*time.Millisecond), "the other one is watched")
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, s.posts(t, c, 0, 900*time.Millisecond, 900*time.Millisecond))
		require.Equal(t, 1, s.posts(t, c, 1100*time.Millisecond))

		// The time is lengthened. The client learns that, later.
		s.closes = time.Hour
		s.posts(t, c, 10*time.Minute, 2*time.Second)
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.posts(t, c, 0, 29*time.Second))
		c.CloseIdleConnections()
	})
}

// A server that closes earlier than expected is watched from the beginning.
func TestKeepAliveTimeIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &impatient{closes: 600 * time.Millisecond}
		c := s.client(t)
		s.posts(t, c, 0)
		time.Sleep(3 * time.Second) // it is found closed when it has waited for long enough
		require.Equal(t, 2, s.posts(t, c, 0, 200*time.Millisecond), "it is not kept for use")
		time.Sleep(time.Second)
		require.Equal(t, 1, s.posts(t, c, 0, 250*time.Millisecond))
		require.Equal(t, 1, s.posts(t, c, 350*time.Millisecond))
		c.CloseIdleConnections()
	})
}

// Something between us and the server can close earlier than the server says.
func TestKeepAliveThatIsNotTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &impatient{closes: 3 * time.Second, says: "Keep-Alive: timeout=60\r\n"}
		c := s.client(t)
		require.Equal(t, 2, s.posts(t, c, 0, 10*time.Second))
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, s.posts(t, c, 0, 1900*time.Millisecond, 1900*time.Millisecond))
		require.Equal(t, 2, s.posts(t, c, 2100*time.Millisecond, 2100*time.Millisecond))
		c.CloseIdleConnections()
	})
}

func TestConnectionsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &impatient{closes: time.Hour, says: "Keep-Alive: timeout=60\r\n"}
		c := s.client(t)
		gaps := make([]time.Duration, 30)
		for i := range gaps {
			gaps[i] = 20 * time.Second
		}
		require.Equal(t, 2, s.posts(t, c, gaps...), "ten minutes, of five each")
		c.CloseIdleConnections()
	})
}

// Watched connections are closed with the others, and nothing is learned from that.
func TestWatchedConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &impatient{closes: time.Hour}
		c := s.client(t)
		s.posts(t, c, 0)
		time.Sleep(3 * time.Second) // it is watched
		require.Equal(t, 1, c.Watched())
		c.CloseIdleConnections()
		synctest.Wait()
		require.Zero(t, c.Watched())
		require.Equal(t, 2, s.posts(t, c, 0, 2*time.Second))
		c.CloseIdleConnections()
	})
}

// ErrClosedIdle means that the server closed a kept connection as a request was sent.
// To close a new connection, or to close it within an answer, is another error.
func TestClosedIdle(t *testing.T) {
	const tooLate = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	inClearAndOverTLS(t, "closed, which it says", func(t *testing.T, version uint16) {
		kept := strings.Replace(tooLate, "Connection: close\r\n", "", 1)
		s := serveOver(t, version, answers(tooLate), answers(ok, kept, tooLate), answers(ok, tooLate))
		c := s.client(t)
		for _, want := range []int{408, 200, 408} {
			answer, _, err := post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			require.Equal(t, want, answer.StatusCode)
		}
		_, _, err := post(t.Context(), c, s.url(), small)
		require.ErrorIs(t, err, http1.ErrClosedIdle)

		c = s.client(t) // the other client has learned to keep nothing
		_, _, err = post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		answer, _, err := post(t.Context(), c, s.url(), make([]byte, 64<<10))
		require.NoError(t, err)
		require.Equal(t, 408, answer.StatusCode, "the server may have waited for the body")
	})
	closes := func(c net.Conn, r *bufio.Reader) { takes(r) }
	resets := func(c net.Conn, r *bufio.Reader) {
		takes(r)
		if below, ok := c.(interface{ NetConn() net.Conn }); ok {
			c = below.NetConn().(*held).Conn
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	for name, end := range map[string]func(net.Conn, *bufio.Reader){"closed": closes, "reset": resets} {
		inClearAndOverTLS(t, name, func(t *testing.T, version uint16) {
			s := serveOver(t, version, end, func(c net.Conn, r *bufio.Reader) {
				takes(r)
				write(c, ok)
				end(c, r)
			}, func(c net.Conn, r *bufio.Reader) {
				takes(r)
				write(c, ok)
				takes(r)
				write(c, "HTTP/1.1 200 OK\r\n")
			})
			c := s.client(t)
			_, _, err := post(t.Context(), c, s.url(), small)
			require.Error(t, err)
			require.NotErrorIs(t, err, http1.ErrClosedIdle, "on a new connection")

			_, _, err = post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			_, _, err = post(t.Context(), c, s.url(), small)
			require.ErrorIs(t, err, http1.ErrClosedIdle)
			require.True(t, http1.ClosedByPeer(err), "%v", err)

			c = s.client(t) // the other client has learned to keep nothing
			_, _, err = post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			_, _, err = post(t.Context(), c, s.url(), small)
			require.Error(t, err)
			require.NotErrorIs(t, err, http1.ErrClosedIdle, "in its answer")
		})
	}
}
