package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
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
		// The usual form, and others beside it.
		"HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length:4\r\nx-a-b:  c d\r\n\r\nfine",
		"HTTP/1.1 204\r\n\r\n", "HTTP/1.1 204 \r\n\r\n", "HTTP/1.1  204 x\r\n\r\n", "HTTP/1.1 204No\r\n\r\n", "HTTP/1.1 +20 x\r\n\r\n", "HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 304 x\r\nContent-Length: 4\r\n\r\n", "HTTP/1.1 204 x\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nfine",
		"HTTP/1.1 200 OK\r\nContent-Length: 004\r\n\r\nfine", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
		"HTTP/1.1 204 x\r\nA: b\r\na: c\r\n\r\n", "HTTP/1.1 204 x\r\nA: b \r\nB:\tc\r\nC:\r\n\r\n", "HTTP/1.1 204 x\r\nA\u00e9: b\r\n\r\n", "HTTP/1.1 204 x\r\nA: \u00e9\r\n\r\n",
		"HTTP/1.1 204 x\r\nA: b\n\r\n", "HTTP/1.1 204 x\nA: b\r\n\r\n", "HTTP/1.1 204 x\r\nA: b\rc\r\n\r\n", "HTTP/1.1 204 x\r\nA: b\r\n\tc\r\n\r\n", "HTTP/1.1 204 x\r\n: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nfine more", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 4\r\n\r\nfine",
		"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 4\r\n\r\nfine", "HTTP/1.1 204 x\r\nno colon\r\n\r\n", "http/1.1 204 x\r\n\r\n", "HTTP/1.1 204 x\r\n" + strings.Repeat("A: b\r\n", 900) + "\r\n",
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

// The server gets the same bytes as from net/http's Request.Write, whatever a request has.
func FuzzRequest(f *testing.F) {
	for _, v := range []struct{ host, path, name, value string }{
		{"example.com", "/hook", "Webhook-Id", "evt_1"}, {"127.0.0.1:8080", "/a%20b?c=d&e", "x-lower", "a  b"}, {"[::1]:80", "", "Host", "other.example"},
		{"b\u00fccher.example", "/\u00fc", "X-\u00fc", "\u00fc"}, {"[fe80::1%25eth0]", "/", "X", "a\r\nY: b"}, {"a b", "/ ", "a b", " spaced\t"}, {"", "//x", "", ""},
		{"example.com", "/", "User-Agent", ""}, {"example.com", "/", "User-Agent", " a\nb"}, {"example.com", "/", "Content-Length", "7"}, {"example.com", "/", "Transfer-Encoding", "chunked"},
		{"example.com", "/", "Trailer", "X"}, {"example.com", "/\x7f", "Connection", "close"}, {"EXAMPLE.com", "/;a=b", "Expect", "100-continue"},
	} {
		f.Add(v.host, v.path, v.name, v.value)
	}
	f.Fuzz(func(t *testing.T, host, path, name, value string) {
		request := func(body io.ReadCloser) *http.Request {
			r := &http.Request{
				Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "example.com", Path: path}, Host: host, Body: body, ContentLength: int64(len(small)),
				Header: http.Header{"User-Agent": {"surehook"}, "Content-Type": {"application/json"}, "Webhook-Attempt": {"1"}},
			}
			r.Header[name] = append(r.Header[name], value, "second")
			if name == "User-Agent" {
				r.Header[name] = []string{value}
			}
			return r.WithContext(t.Context())
		}
		var want bytes.Buffer
		failed := request(io.NopCloser(bytes.NewReader(small))).Write(&want) != nil
		var got bytes.Buffer
		c := newClient(t)
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			return closing{answer: strings.NewReader("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), written: &got}, nil
		}
		_, err := c.RoundTrip(request(http1.NewBody(small)))
		require.Equal(t, failed, err != nil, "%v", err)
		if !failed {
			require.Equal(t, want.String(), got.String())
		}
	})
}
