package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

var small = []byte(`{"id":"evt_1"}`)

// inClearAndOverTLS runs a test in clear and over TLS.
func inClearAndOverTLS(t *testing.T, name string, test func(t *testing.T, version uint16)) {
	t.Run(name+", in clear", func(t *testing.T) { test(t, 0) })
	t.Run(name+", TLS 1.2", func(t *testing.T) { test(t, tls.VersionTLS12) })
	t.Run(name+", TLS 1.3", func(t *testing.T) { test(t, tls.VersionTLS13) })
}

func TestConnectionIsUsedAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"length":     ok,
		"chunked":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
		"trailer":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\nX-Sum: 1\r\n\r\n",
		"nothing":    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"no content": "HTTP/1.1 204 No Content\r\n\r\n",
		"no length":  "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		"failure":    "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nfine",
		"interim":    "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok,
		"old":        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nfine",
		"records":    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi" + then + "ne",
	} {
		inClearAndOverTLS(t, name, func(t *testing.T, version uint16) {
			s := serveOver(t, version, answers(answer, answer, answer))
			c := s.client(t)
			for range 3 {
				got, text, err := post(t.Context(), c, s.url(), small)
				require.NoError(t, err)
				require.Contains(t, []int{200, 204, 500}, got.StatusCode)
				if !strings.HasPrefix(name, "no") {
					require.Equal(t, "fine", text)
				}
			}
			require.Equal(t, 1, s.opened())
		})
	}
}

func TestConnectionIsNotUsedAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"close":                 "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine",
		"old":                   "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine",
		"more than one":         ok + ok,
		"another one":           ok + then + ok,
		"another one's record":  "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n" + then + ok,
		"no content, but some":  "HTTP/1.1 204 No Content\r\n\r\n" + then + "ok",
		"length of characters":  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\xc3" + then + "\xa9",
		"beyond the last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + then + "\r\n",
		"switch":                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"no content of 2 bytes": "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n",
		"no content, in chunks": "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
		"not modified":          "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
		"kept for no time":      "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0\r\nContent-Length: 4\r\n\r\nfine",
	} {
		inClearAndOverTLS(t, name, func(t *testing.T, version uint16) {
			s := serveOver(t, version, answers(answer), answers(ok))
			c := s.client(t)
			_, _, err := post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			got, text, err := post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			require.Equal(t, 200, got.StatusCode)
			require.Equal(t, "fine", text)
			require.Equal(t, 2, s.opened())
		})
	}
	inClearAndOverTLS(t, "body left", func(t *testing.T, version uint16) {
		s := serveOver(t, version, answers(ok), answers(ok))
		c := s.client(t)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url(), bytes.NewReader(small))
		require.NoError(t, err)
		answer, err := c.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		_, err = answer.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
		_, _, err = post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		require.Equal(t, 2, s.opened())
	})
	inClearAndOverTLS(t, "asked for another one", func(t *testing.T, version uint16) {
		s := serveOver(t, version, answers(ok), answers(ok, ok))
		c := s.client(t)
		for _, by := range []http.RoundTripper{c, http1.Anew{Client: c}, c} {
			_, _, err := post(t.Context(), by, s.url(), small)
			require.NoError(t, err)
		}
		require.Equal(t, 2, s.opened())
	})
}

// Many servers close connections that were not used for some seconds.
func TestKeptConnectionThatIsClosedOrSpokenOnIsGivenUp(t *testing.T) {
	for name, last := range map[string]string{"closed": "", "spoken on": ok} {
		inClearAndOverTLS(t, name, func(t *testing.T, version uint16) {
			sent, go1 := make(chan struct{}), make(chan struct{})
			s := serveOver(t, version, func(c net.Conn, r *bufio.Reader) {
				takes(r)
				_, _ = io.WriteString(c, ok)
				<-go1
				_, _ = io.WriteString(c, last)
				if last == "" {
					_ = c.Close()
				}
				close(sent)
				_, _ = r.ReadByte()
			}, answers(ok))
			c := s.client(t)
			_, _, err := post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			close(go1)
			<-sent
			require.Eventually(t, func() bool { return !c.Alive() }, time.Minute, time.Millisecond)
			answer, text, err := post(t.Context(), c, s.url(), small)
			require.NoError(t, err)
			require.Equal(t, 200, answer.StatusCode)
			require.Equal(t, "fine", text)
			require.Equal(t, 2, s.opened())
		})
	}
}

func TestLongBody(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 4<<20)
	t.Run("is taken", func(t *testing.T) {
		s, c := serve(t, answers(ok, ok, ok)), newClient(t)
		for range 3 {
			_, text, err := post(t.Context(), c, s.url(), long)
			require.NoError(t, err)
			require.Equal(t, "fine", text)
		}
		require.Equal(t, 1, s.opened())
	})
	t.Run("is refused before it is read", func(t *testing.T) {
		done := make(chan struct{})
		// More than the sockets' buffers take, or all of it would be written.
		long := bytes.Repeat([]byte("x"), 64<<20)
		s, c := serve(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nlong")
			<-done
		}, answers(ok)), newClient(t)
		defer close(done)
		answer, text, err := post(t.Context(), c, s.url(), long)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
		require.Equal(t, "long", text)
		_, _, err = post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		require.Equal(t, 2, s.opened())
	})
	// A server may answer before it reads. A body that it has promised to take is sent to
	// its end.
	for name, answer := range map[string]string{
		"":                            ok,
		", which ends the connection": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine",
		", which has no body":         "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
	} {
		answersFirst := func(t *testing.T, then func(c net.Conn, request *http.Request)) error {
			c := newClient(t)
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				go func() {
					defer there.Close()
					if request, err := http.ReadRequest(bufio.NewReader(there)); err == nil {
						_, _ = io.WriteString(there, answer)
						then(there, request)
					}
				}()
				return here, nil
			}
			_, _, err := post(until{t.Context(), time.Now().Add(10 * time.Second)}, c, "http://example.com/", long)
			return err
		}
		t.Run("is read after the answer"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took := make(chan int64, 1)
				require.NoError(t, answersFirst(t, func(_ net.Conn, request *http.Request) {
					time.Sleep(5 * time.Second) // the bubble's
					n, _ := io.Copy(io.Discard, request.Body)
					took <- n
				}))
				require.EqualValues(t, len(long), <-took)
			})
		})
		t.Run("is not wanted after the answer"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, answersFirst(t, func(c net.Conn, _ *http.Request) { _ = c.Close() }))
			})
		})
		t.Run("is never read after the answer"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				require.ErrorIs(t, answersFirst(t, func(net.Conn, *http.Request) { <-t.Context().Done() }), os.ErrDeadlineExceeded)
				require.Equal(t, 10*time.Second, time.Since(began))
			})
		})
	}
	t.Run("that is shorter than was said", func(t *testing.T) {
		s, c := serve(t, answers(ok)), newClient(t)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url(), bytes.NewReader(long))
		require.NoError(t, err)
		r.ContentLength++
		_, err = c.RoundTrip(r)
		require.ErrorContains(t, err, "ContentLength")
	})
}

func TestHeadersAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"one":     "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10),
		"many":    "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 16<<10),
		"interim": strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 16<<10) + ok,
		"no line": strings.Repeat("x", 128<<10),
	} {
		t.Run(name, func(t *testing.T) {
			s, c := serve(t, answers(text)), newClient(t)
			_, _, err := post(t.Context(), c, s.url(), small)
			require.ErrorIs(t, err, http1.ErrHeader)
		})
	}
	t.Run("but not the body", func(t *testing.T) {
		s, c := serve(t, answers("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("x", 200_000), ok)), newClient(t)
		_, text, err := post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		require.Len(t, text, 200_000)
		_, _, err = post(t.Context(), c, s.url(), small)
		require.NoError(t, err)
		require.Equal(t, 1, s.opened())
	})
}

// closing is a connection whose other side has answered, and closed, unless what is
// written has a place.
type closing struct {
	net.Conn
	answer  io.Reader
	written io.Writer
}

func (c closing) Read(p []byte) (int, error) { return c.answer.Read(p) }
func (c closing) Write(p []byte) (int, error) {
	if c.written != nil {
		return c.written.Write(p)
	}
	return 0, &net.OpError{Op: "write", Err: syscall.EPIPE}
}
func (c closing) SetDeadline(time.Time) error { return nil }
func (c closing) Close() error                { return nil }

func TestAnswerOfWhoHasClosed(t *testing.T) {
	c, answer := newClient(t), "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nlong"
	c.Dial = func(context.Context, string, string) (net.Conn, error) {
		return closing{answer: strings.NewReader(answer)}, nil
	}
	got, text, err := post(t.Context(), c, "http://example.com/", small)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, got.StatusCode)
	require.Equal(t, "long", text)
	require.Zero(t, c.Idle())
	answer = ""
	_, _, err = post(t.Context(), c, "http://example.com/", small)
	require.ErrorIs(t, err, syscall.EPIPE)
}

// However exchanges end, no request gets another request's answer.
func TestAnswersAreNotMixedUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch rand.N(8) {
		case 0:
			w.Header().Set("Connection", "close")
		case 1:
			time.Sleep(time.Duration(rand.N(3)) * time.Millisecond)
		case 2:
			w.WriteHeader(http.StatusEarlyHints)
		}
		_, _ = w.Write(body)
	}))
	defer server.Close()
	c := newClient(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	whole := 0
	for worker := range 32 {
		wg.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				switch rand.N(4) {
				case 0:
					time.AfterFunc(time.Duration(rand.N(1000))*time.Microsecond, cancel)
				case 1:
					ctx = until{ctx, time.Now().Add(time.Duration(rand.N(2000)) * time.Microsecond)}
				}
				sent := fmt.Sprintf("%d/%d %s", worker, i, strings.Repeat("x", rand.N(64<<10)))
				answer, text, err := post(ctx, c, server.URL, []byte(sent))
				cancel()
				if err == nil {
					mu.Lock()
					whole++
					mu.Unlock()
					if answer.StatusCode != http.StatusOK || text != sent {
						t.Errorf("sent %q…, got %d %q…", sent[:8], answer.StatusCode, text[:min(8, len(text))])
					}
				}
			}
		})
	}
	wg.Wait()
	require.Greater(t, whole, 1000)
}

func TestTLS(t *testing.T) {
	opened := 0
	var mu sync.Mutex
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.TLS.NegotiatedProtocol)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			mu.Lock()
			opened++
			mu.Unlock()
		}
	}
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := newClient(t)
	c.TLS = &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}}
	c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	for range 3 {
		_, text, err := post(t.Context(), c, "https://example.com/", small)
		require.NoError(t, err)
		require.Equal(t, "example.com http/1.1", text)
	}
	mu.Lock()
	require.Equal(t, 1, opened)
	mu.Unlock()

	server.CloseClientConnections()
	require.Eventually(t, func() bool { return !c.Alive() }, time.Minute, time.Millisecond)
	_, _, err := post(t.Context(), c, "https://example.com/", small)
	require.NoError(t, err)

	_, _, err = post(t.Context(), c, "https://other.example/", small)
	var name x509.HostnameError
	require.ErrorAs(t, err, &name)
}

// A connection on which the server chose no protocol serves no request before it is known
// that the server speaks HTTP/1.1.
func TestUndecidedConnectionWaits(t *testing.T) {
	requests, opened := 0, 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer server.Close()
	unknown := true
	c := newClient(t)
	c.TLS = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs} // it offers no protocols
	c.Negotiated = func(string) bool { return unknown }
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened++
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for range 2 {
		_, _, err := post(t.Context(), c, server.URL, small)
		require.ErrorIs(t, err, http1.ErrNotNegotiated)
	}
	require.Zero(t, requests)
	unknown = false
	_, _, err := post(t.Context(), c, server.URL, small)
	require.NoError(t, err)
	unknown = true // any more, and yet it has answered on this connection
	_, _, err = post(t.Context(), c, server.URL, small)
	require.NoError(t, err)
	require.Equal(t, 2, requests)
	require.Equal(t, 2, opened)
}

func TestTrace(t *testing.T) {
	s, c := serve(t, answers(ok, ok)), newClient(t)
	var told []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		ConnectStart:         func(string, string) { told = append(told, "connect") },
		GotConn:              func(i httptrace.GotConnInfo) { told = append(told, fmt.Sprint("got ", i.Reused)) },
		WroteHeaders:         func() { told = append(told, "headers") },
		WroteRequest:         func(httptrace.WroteRequestInfo) { told = append(told, "request") },
		GotFirstResponseByte: func() { told = append(told, "answer") },
	})
	for range 2 {
		_, _, err := post(ctx, c, s.url(), small)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"connect", "got false", "headers", "request", "answer", "got true", "headers", "request", "answer"}, told)
}

type closeTold struct {
	io.Reader
	closed bool
}

func (c *closeTold) Close() error { c.closed = true; return nil }

func TestRequestsThatCannotBeMade(t *testing.T) {
	for url, says := range map[string]string{
		"ftp://example.com/": "must be http or https", "http:///": "no host", "http://127.0.0.1:1/": "refused",
	} {
		body := &closeTold{Reader: bytes.NewReader(small)}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		require.NoError(t, err)
		_, err = newClient(t).RoundTrip(r)
		require.ErrorContains(t, err, says)
		require.True(t, body.closed)
	}
}
