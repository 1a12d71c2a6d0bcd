package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

// newClient returns a client that dials with package net.
func newClient(t testing.TB) *http1.Client {
	c := &http1.Client{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdle: 16, IdleTimeout: time.Minute, MaxAge: time.Hour, MaxHeader: 64 << 10}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// post makes a request with a body, and reads the answer to its end.
func post(ctx context.Context, c http.RoundTripper, url string, body []byte) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.GetBody = nil
	answer, err := c.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// script is a server that calls its n-th function with its n-th connection, and then
// closes it. It accepts no further ones.
type script struct {
	address string
	secure  *tls.Config // of its clients; nil: they use no TLS
	mu      sync.Mutex
	n       int
}

func serve(t *testing.T, conns ...func(c net.Conn, r *bufio.Reader)) *script {
	return serveOver(t, 0, conns...)
}

// serveOver is serve over a version of TLS, or, if that is 0, in clear.
func serveOver(t *testing.T, version uint16, conns ...func(c net.Conn, r *bufio.Reader)) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &script{address: l.Addr().String()}
	var config *tls.Config
	if version != 0 {
		config, s.secure = configs()
		config.MinVersion, config.MaxVersion = version, version
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, fn := range conns {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.n++
			s.mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				if config != nil {
					c = tls.Server(&held{Conn: c}, config)
				}
				fn(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return s
}

// configs returns the configurations of a TLS server and of a client that trusts it.
func configs() (server, client *tls.Config) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Clone(), &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}}
}

// client returns a client of the server's.
func (s *script) client(t testing.TB) *http1.Client {
	c := newClient(t)
	if s.secure != nil {
		c.TLS = s.secure
	}
	return c
}

// held is a connection whose writes can be held back, so that they leave together.
type held struct {
	net.Conn
	hold bool
	all  []byte
}

func (h *held) Write(p []byte) (int, error) {
	if h.hold {
		h.all = append(h.all, p...)
		return len(p), nil
	}
	return h.Conn.Write(p)
}

// write writes texts in one segment. Over TLS each is a record of its own.
func write(c net.Conn, texts ...string) {
	secure, ok := c.(*tls.Conn)
	if !ok {
		_, _ = io.WriteString(c, strings.Join(texts, ""))
		return
	}
	below := secure.NetConn().(*held)
	below.hold = true
	for _, text := range texts {
		_, _ = io.WriteString(secure, text)
	}
	below.hold = false
	_, _ = below.Write(below.all)
	below.all = nil
}

func (s *script) url() string {
	if s.secure != nil {
		return "https://" + s.address + "/hook"
	}
	return "http://" + s.address + "/hook"
}

// opened is how many connections there were.
func (s *script) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// takes reads a whole request.
func takes(r *bufio.Reader) bool {
	request, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, request.Body)
	return err == nil
}

// then marks where another record of TLS begins in an answer.
const then = "\x00"

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

// answers reads requests, and writes an answer to each, until the other side closes the
// connection.
func answers(texts ...string) func(c net.Conn, r *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for _, text := range texts {
			if !takes(r) {
				return
			}
			write(c, strings.Split(text, then)...)
		}
		_, _ = r.ReadByte() // until it is closed
	}
}

func request(t testing.TB, host string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/", bytes.NewReader(nil))
	require.NoError(t, err)
	return r
}
