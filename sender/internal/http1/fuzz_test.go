package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// answered is a caller's result of a request.
type answered struct {
	Failed bool
	Status int
	Header http.Header
	Body   string
	Cut    bool // the body failed
}

// A caller gets the same result as from net/http's own transport, whatever the server
// answers before it closes the connection.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		ok, "", "\r\n", "HTTP/1.1", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nto the end",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nold", "HTTP/2.0 200 OK\r\n\r\nnew",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + ok, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 199 x\r\n\r\nHTTP/1.1 500 y\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 99999 x\r\n\r\n", "HTTP/1.1 -12 x\r\n\r\n", "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", "HTTP/1.1 200 OK\r\nA b: x\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: 1\r\n\r\n", "ICY 200 OK\r\n\r\n", "\x16\x03\x01\x02\x00",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70_000) + "\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				if takes(bufio.NewReader(there)) {
					_, _ = there.Write(text)
				}
			}()
			return here, nil
		}
		theirs := &http.Transport{DialContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
		defer theirs.CloseIdleConnections()
		ours := newClient(t)
		ours.Dial = dial
		want, got := ask(t, theirs), ask(t, ours)
		if want.Status == http.StatusSwitchingProtocols && !want.Failed {
			want.Body, want.Cut, got.Cut = "", false, false // to which nobody switches
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("net/http's transport and ours (+) differ on %q:\n%s", text[:min(len(text), 200)], diff)
		}
	})
}

func ask(t *testing.T, c http.RoundTripper) (a answered) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", bytes.NewReader(small))
	require.NoError(t, err)
	answer, err := c.RoundTrip(r)
	if err != nil {
		return answered{Failed: true}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answered{Status: answer.StatusCode, Header: answer.Header, Body: string(body), Cut: err != nil}
}
