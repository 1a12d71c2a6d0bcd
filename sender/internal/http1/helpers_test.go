package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

// newClient returns a client that dials as net does.
func newClient(t testing.TB) *http1.Client {
	c := &http1.Client{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, MaxIdle: 16, IdleTimeout: time.Minute, MaxHeader: 64 << 10}
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

// script is a server that does on its n-th connection what its n-th function says, and
// closes it then. There is no further one.
type script struct {
	address string
	mu      sync.Mutex
	n       int
}

func serve(t *testing.T, conns ...func(c net.Conn, r *bufio.Reader)) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &script{address: l.Addr().String()}
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

func (s *script) url() string { return "http://" + s.address + "/hook" }

// opened is how many connections there were.
func (s *script) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// takes reads a request whole.
func takes(r *bufio.Reader) bool {
	request, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, request.Body)
	return err == nil
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

// answers takes requests, and writes an answer to each, until the other side ends.
func answers(texts ...string) func(c net.Conn, r *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for _, text := range texts {
			if !takes(r) {
				return
			}
			_, _ = io.WriteString(c, text)
		}
		_, _ = r.ReadByte() // until it is closed
	}
}

func request(t testing.TB, host string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/", bytes.NewReader(nil))
	require.NoError(t, err)
	return r
}
