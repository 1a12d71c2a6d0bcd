package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

// piped returns a client whose servers answer every request, and a function that
// returns its open connections, by the host and the order in which they were made.
func piped(t *testing.T) (c *http1.Client, open func() []string) {
	type made struct {
		name   string
		closed atomic.Bool
	}
	var all []*made
	seen := map[string]int{}
	c = newClient(t)
	c.IdleTimeout = 30 * time.Second
	c.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		seen[host]++
		m := &made{name: fmt.Sprintf("%s%d", host, seen[host])}
		all = append(all, m)
		here, there := net.Pipe()
		go func() {
			for r := bufio.NewReader(there); takes(r); {
				_, _ = io.WriteString(there, patient)
			}
			m.closed.Store(true)
		}()
		return here, nil
	}
	return c, func() []string {
		synctest.Wait()
		names := []string{}
		for _, m := range all {
			if !m.closed.Load() {
				names = append(names, m.name)
			}
		}
		return names
	}
}

// patient is an answer of a server that keeps its connections for a long time.
const patient = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=3600\r\nContent-Length: 4\r\n\r\nfine"

// together makes a request to each host, all at a time.
func together(t *testing.T, c *http1.Client, hosts ...string) {
	ends := make([]func(), len(hosts))
	for i, host := range hosts {
		ends[i] = begin(t, c, host)
	}
	for _, end := range ends {
		end()
	}
}

// begin makes a request, and returns a function that reads its answer.
func begin(t *testing.T, c *http1.Client, host string) (end func()) {
	answer, err := c.RoundTrip(request(t, host))
	require.NoError(t, err)
	return func() {
		_, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
	}
}

func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, open := piped(t)
		together(t, c, "a", "a", "b")
		require.Equal(t, []string{"a1", "a2", "b1"}, open())
		time.Sleep(20 * time.Second)
		together(t, c, "a") // on the one that was used last
		require.Equal(t, []string{"a1", "a2", "b1"}, open())
		time.Sleep(12 * time.Second) // they are looked for every second
		require.Equal(t, []string{"a2"}, open())
		time.Sleep(19 * time.Second)
		require.Empty(t, open())
		together(t, c, "a")
		require.Equal(t, []string{"a3"}, open())
		time.Sleep(31 * time.Second)
		require.Empty(t, open())
	})
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, open := piped(t)
		c.MaxIdle = 3
		together(t, c, "a", "b", "a", "c", "d")
		require.Equal(t, []string{"a2", "c1", "d1"}, open())
		together(t, c, "a", "e")
		require.Equal(t, []string{"a2", "d1", "e1"}, open())
		c.CloseIdleConnections()
		require.Empty(t, open())
	})
}

func TestCloseIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, open := piped(t)
		together(t, c, "a", "b")
		under := begin(t, c, "a")
		c.CloseIdleConnections()
		require.Equal(t, []string{"a1"}, open())
		under()
		require.Empty(t, open())

		first, second := begin(t, c, "a"), begin(t, c, "b")
		c.CloseIdleConnections()
		first()
		require.Equal(t, []string{"b2"}, open())
		together(t, c, "a") // from now on they are kept again
		second()
		require.Equal(t, []string{"b2", "a3"}, open())
		c.CloseIdleConnections()
		require.Empty(t, open())
	})
}

func TestDeadlineIsOfOneExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, open := piped(t)
		_, _, err := post(until{t.Context(), time.Now().Add(time.Second)}, c, "http://a/", small)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		_, _, err = post(t.Context(), c, "http://a/", small)
		require.NoError(t, err)
		require.Equal(t, []string{"a1"}, open())
		c.CloseIdleConnections()
	})
}

// A deadline that has passed while the connection was kept says nothing of its server.
func TestDeadlineThatHasPassedKeepsTheConnection(t *testing.T) {
	inClearAndOverTLS(t, "kept", func(t *testing.T, version uint16) {
		s := serveOver(t, version, answers(patient, patient), answers(patient))
		c := s.client(t)
		var made net.Conn
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			made, err = new(net.Dialer).DialContext(ctx, network, address)
			return made, err
		}
		_, _, err := post(until{t.Context(), time.Now().Add(time.Minute)}, c, s.url(), small)
		require.NoError(t, err)
		require.NoError(t, made.SetDeadline(time.Unix(1, 0))) // the minute is over
		_, text, err := post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		require.Equal(t, "fine", text)
		require.Equal(t, 1, s.opened())
	})
}
