package post

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A proxy's answer makes a tunnel only if it is a 2xx, which interim answers may precede, and
// no part of it is taken for the target's.
func FuzzProxyAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 204 \r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", "",
		"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n\x16\x03\x01", "HTTP/1.1 302 Found\r\n\r\n", "HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n", "\x16\x03\x01",
		"HTTP/1.1 101", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	for _, size := range []int{4 << 10, maxProxyAnswer, maxProxyAnswer + 1} { // heads as long as a buffer or a bound
		head := "HTTP/1.1 200 OK\r\nX: "
		f.Add([]byte(head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n"))
		f.Add([]byte(head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n220 mail.example.com"))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		conn := &scripted{answer: bytes.NewReader(answer)}
		p := &proxy{header: http.Header{"User-Agent": {"surehook"}}, reach: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
		_, failure := p.connect(t.Context(), netip.MustParseAddrPort("8.8.8.8:443"), 1)
		if !strings.HasPrefix(conn.asked.String(), "CONNECT 8.8.8.8:443 HTTP/1.1\r\nHost: 8.8.8.8:443\r\n") {
			t.Fatalf("asked for %q", conn.asked.String())
		}
		if failure != nil {
			if failure.text == "" {
				t.Fatalf("%+v", failure)
			}
			return
		}
		head, ended := strings.CutSuffix(strings.ReplaceAll(string(answer), "\r\n", "\n"), "\n\n")
		heads := strings.Split(head, "\n\n")
		for i, head := range heads {
			line, _, _ := strings.Cut(head, "\n")
			status, first := strings.Fields(line), byte('1')
			if i == len(heads)-1 {
				first = '2'
			}
			if !ended || len(status) < 2 || !strings.HasPrefix(status[0], "HTTP/") || len(status[1]) != 3 || status[1][0] != first || status[1] == "101" {
				t.Fatalf("a tunnel by %q", answer)
			}
		}
	})
}

// scripted is a connection to somebody who has answered already.
type scripted struct {
	net.Conn
	asked  bytes.Buffer
	answer *bytes.Reader
}

func (c *scripted) Read(p []byte) (int, error)  { return c.answer.Read(p) }
func (c *scripted) Write(p []byte) (int, error) { return c.asked.Write(p) }
func (c *scripted) SetDeadline(time.Time) error { return nil }
func (c *scripted) Close() error                { return nil }
