package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A body that stalls is answered, and the connection ends: net/http would wait for the rest.
func TestBodyThatStalls(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(bounded(http.NotFoundHandler(), time.Millisecond, nil))
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = conn.Write([]byte("POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	require.True(t, res.Close)
}

// A client may ask before it sends a body. The server refuses one that is too large at once.
func TestBodyThatIsAskedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(bounded(http.NotFoundHandler(), 20*time.Second, nil))
	t.Cleanup(srv.Close)
	answer := func(size int) int {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(conn, "POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusContinue, answer(maxBody))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer(maxBody+1))
}
