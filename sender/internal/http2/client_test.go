package http2_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
)

var small = []byte(`{"id":"evt_1"}`)

// server speaks HTTP/2 alone, and counts connections.
type server struct {
	*httptest.Server
	client *http2.Client
	opened atomic.Int32
}

func serve(t *testing.T, h http.HandlerFunc, with ...func(*server)) *server {
	s := &server{Server: httptest.NewUnstartedServer(h)}
	s.EnableHTTP2 = true
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP2(true)
	s.TLS = &tls.Config{NextProtos: []string{"h2"}}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	for _, fn := range with {
		fn(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	s.client = &http2.Client{
		Dial: new(net.Dialer).DialContext, TLS: &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}},
		MaxIdle: 16, IdleTimeout: time.Minute, MaxAge: time.Hour, MaxHeader: 64 << 10,
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// until is a context with a deadline at which it does not end.
type until struct {
	context.Context
	deadline time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.deadline, true }

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

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestConnectionIsUsedAgain(t *testing.T) {
	s := serve(t, echo)
	long := strings.Repeat("x", 900<<10)
	for _, body := range []string{"one", long, "three"} {
		answer, text, err := post(t.Context(), s.client, s.URL, []byte(body))
		require.NoError(t, err)
		require.Equal(t, 2, answer.ProtoMajor)
		require.Equal(t, body, text)
	}
	require.EqualValues(t, 1, s.opened.Load())
	_, _, err := post(t.Context(), http2.Anew{Client: s.client}, s.URL, small)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.opened.Load(), "where that is asked for")
}

// Streams share a connection once its server has answered on it.
func TestStreamsShareAConnection(t *testing.T) {
	var open sync.WaitGroup
	open.Add(10)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			open.Done()
			open.Wait()
		}
	})
	_, _, err := post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, _, err := post(t.Context(), s.client, s.URL+"/together", small); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, s.opened.Load())
}

// A request that the server refuses is not sent again, whatever reason the server
// gives.
func TestNothingIsSentTwice(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/reset" {
			panic(http.ErrAbortHandler)
		}
	})
	for i := range 5 {
		_, _, err := post(t.Context(), s.client, s.URL+"/reset", small)
		require.ErrorIs(t, err, http2.ErrReset)
		require.EqualValues(t, i+1, seen.Load())
	}
}

func TestServerThatOffersNoHTTP2(t *testing.T) {
	asked := false
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for name, protocols := range map[string][]string{"another": {"http/1.1"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			s.TLS.NextProtos = protocols
			c := &http2.Client{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{RootCAs: roots}, MaxAge: time.Hour}
			_, _, err := post(t.Context(), c, s.URL, small)
			require.ErrorIs(t, err, http2.ErrNotOffered)
		})
	}
	require.False(t, asked)
	_, _, err := post(t.Context(), new(http2.Client), "http://example.com/", small)
	require.ErrorContains(t, err, "must be https")
}

func TestDeadlineAndEnd(t *testing.T) {
	hang := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path != "/" {
			<-hang
		}
	})
	defer close(hang)
	for _, path := range []string{"/headers", "/body"} {
		opened := s.opened.Load()
		_, _, err := post(until{t.Context(), time.Now().Add(100 * time.Millisecond)}, s.client, s.URL+path, small)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, _, err = post(ctx, s.client, s.URL+path, small)
		require.ErrorIs(t, err, context.Canceled)
		_, _, err = post(t.Context(), s.client, s.URL, small)
		require.NoError(t, err)
		require.EqualValues(t, 3, s.opened.Load()-opened, "what did not answer in time is not used again")
		s.client.CloseIdleConnections()
	}
	t.Run("dial", func(t *testing.T) {
		c := &http2.Client{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, TLS: &tls.Config{}}
		_, _, err := post(until{t.Context(), time.Now().Add(50 * time.Millisecond)}, c, "https://192.0.2.1/", small)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestHeadersAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 70_000)) })
	_, _, err := post(t.Context(), s.client, s.URL, small)
	require.ErrorIs(t, err, http1.ErrHeader)
}

type connKey struct{}

// The errors tell whether the server has ended a kept connection or a new one.
func TestClosedIdle(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			_ = r.Context().Value(connKey{}).(net.Conn).Close()
		}
	}, func(s *server) {
		s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	})
	_, _, err := post(t.Context(), s.client, s.URL+"/end", small)
	require.ErrorIs(t, err, http2.ErrReset)
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	_, _, err = post(t.Context(), s.client, s.URL+"/end", small)
	require.ErrorIs(t, err, http1.ErrClosedIdle)
	require.EqualValues(t, 2, s.opened.Load())

	// One that was closed before is not used.
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	s.CloseClientConnections()
	require.Eventually(t, func() bool { return !s.client.Usable() }, 10*time.Second, time.Millisecond)
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.EqualValues(t, 4, s.opened.Load())
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := serve(t, echo)
	_, _, err := post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.Equal(t, 1, s.client.Kept())
	s.client.CloseIdleConnections()
	require.Zero(t, s.client.Kept())

	s.client.IdleTimeout = time.Millisecond
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.client.Kept() == 0 }, 10*time.Second, 10*time.Millisecond)
	s.client.IdleTimeout = time.Hour
	s.client.MaxAge = time.Nanosecond
	opened := s.opened.Load()
	for range 3 {
		_, _, err = post(t.Context(), s.client, s.URL, small)
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, s.opened.Load()-opened, "too old for another request")
}

// Frames of HTTP/2: RFC 9113, section 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameWindowUpdate = 0, 1, 3, 4, 6, 8

	endStream, endHeaders = 1, 4
)

func frame(kind, flags, stream byte, payload ...byte) []byte {
	n := len(payload)
	return append([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, stream}, payload...)
}

// readFrame returns a frame's kind and flags, and how long its payload is.
func readFrame(c net.Conn) (kind, flags byte, length int64, err error) {
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, 0, 0, err
	}
	length = int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
	_, err = io.CopyN(io.Discard, c, length)
	return head[3], head[4], length, err
}

var (
	settings = frame(frameSettings, 0, 0)
	success  = frame(frameHeaders, endHeaders, 1, 0x88) // status 200
)

// serveFrames serves one connection over TLS: what a client sends of its first request's
// headers is read and answered. Then the connection is then's, or, if that is nil, nothing
// is read any more.
func serveFrames(t *testing.T, then func(net.Conn), answer ...[]byte) *server {
	s := serve(t, echo) // for its certificate and its client
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.TLS)
	require.NoError(t, err)
	done := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		for kind := byte(frameSettings); kind != frameHeaders; {
			if kind, _, _, err = readFrame(c); err != nil {
				return
			}
		}
		for _, frame := range answer {
			_, _ = c.Write(frame)
		}
		if then != nil {
			then(c)
		}
		<-done
	})
	t.Cleanup(func() {
		close(done)
		s.client.CloseIdleConnections()
		_ = l.Close()
		serving.Wait()
	})
	s.URL = "https://" + l.Addr().String()
	return s
}

// stuck is a connection whose other side reads no more: it has room for so many bytes.
type stuck struct {
	net.Conn
	room   int
	full   chan struct{} // closed when something is written that has no room
	closed chan struct{}
	once   [2]sync.Once
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.room -= len(p); s.room >= 0 {
		return s.Conn.Write(p)
	}
	s.once[0].Do(func() { close(s.full) })
	<-s.closed
	return 0, net.ErrClosed
}

func (s *stuck) Close() error {
	s.once[1].Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// A server that has answered, and reads no more, keeps nobody longer than the context says.
func TestServerThatReadsNoMore(t *testing.T) {
	answer := [][]byte{
		frame(frameSettings, 0, 0, 0, 4, 127, 255, 255, 255), // streams may send 2 GiB,
		frame(frameWindowUpdate, 0, 0, 127, 0, 0, 0),         // and the connection too
		success, frame(frameData, 0, 1, 's', 'o', 'm', 'e'),
	}
	for name, take := range map[string]func(context.Context, io.ReadCloser){
		"the answer is read": func(_ context.Context, body io.ReadCloser) {
			_, err := io.ReadAll(body)
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		},
		"the answer is closed": func(ctx context.Context, body io.ReadCloser) {
			_, _ = body.Read(make([]byte, 1))
			<-ctx.Done()
			_ = body.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveFrames(t, nil, answer...)
			full := make(chan struct{})
			s.client.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, network, address)
				return &stuck{Conn: c, room: 256 << 10, full: full, closed: make(chan struct{})}, err
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(make([]byte, 1<<20)))
			require.NoError(t, err)
			r.GetBody = nil
			got, err := s.client.RoundTrip(r)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, got.StatusCode)
			taken := make(chan struct{})
			go func() {
				take(ctx, got.Body)
				close(taken)
			}()
			<-full
			cancel()
			select {
			case <-taken:
			case <-time.After(20 * time.Second):
				t.Fatal("it is kept")
			}
		})
	}
}

// The client keeps little of an answer in memory that nobody reads: a server may not send
// more.
func TestServerIsNotFarAhead(t *testing.T) {
	answer := [][]byte{settings, success}
	for range 5 {
		answer = append(answer, frame(frameData, 0, 1, make([]byte, 16<<10)...))
	}
	s := serveFrames(t, nil, answer...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, bytes.NewReader(small))
	require.NoError(t, err)
	got, err := s.client.RoundTrip(r)
	require.NoError(t, err)
	defer got.Body.Close()
	require.Eventually(t, func() bool { return !s.client.Usable() }, 10*time.Second, time.Millisecond)
	_, err = io.ReadAll(got.Body)
	require.ErrorContains(t, err, "FLOW_CONTROL_ERROR")
}

// A server may answer before it reads. What it has promised to take is sent to its end,
// unless it says that it wants no more.
func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	const length = 200 << 10 // more than a server allows without being asked
	for name, c := range map[string]struct {
		answer [][]byte
		whole  bool
	}{
		"alone":       {[][]byte{frame(frameHeaders, endHeaders|endStream, 1, 0x88)}, true},
		"with a body": {[][]byte{success, frame(frameData, endStream, 1, 'f', 'i', 'n', 'e')}, true},
		"and refused": {[][]byte{frame(frameHeaders, endHeaders|endStream, 1, 0x88), frame(frameReset, 0, 1, 0, 0, 0, 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			took := make(chan int64, 1)
			s := serveFrames(t, func(conn net.Conn) {
				var total int64
				defer func() { took <- total }()
				for {
					kind, flags, n, err := readFrame(conn)
					if err != nil || kind == frameReset {
						return
					}
					if kind != frameData {
						continue
					}
					if total += n; flags&endStream != 0 {
						return
					}
					for _, stream := range []byte{0, 1} {
						_, _ = conn.Write(frame(frameWindowUpdate, 0, stream, 0, 0, byte(n>>8), byte(n)))
					}
				}
			}, append([][]byte{settings}, c.answer...)...)
			got, _, err := post(t.Context(), s.client, s.URL, make([]byte, length))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, got.StatusCode)
			if c.whole {
				require.EqualValues(t, length, <-took)
			}
		})
	}
	t.Run("that is never read", func(t *testing.T) {
		s := serveFrames(t, nil, settings, frame(frameHeaders, endHeaders|endStream, 1, 0x88))
		_, _, err := post(until{t.Context(), time.Now().Add(50 * time.Millisecond)}, s.client, s.URL, make([]byte, length))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A server that goes on sending what is no answer is not read any more, whether an answer
// is waited for or not.
func TestServerThatSendsTooMuch(t *testing.T) {
	before := log.Writer()
	log.SetOutput(io.Discard) // net/http writes of each frame that it does not know
	t.Cleanup(func() { log.SetOutput(before) })
	const most = 16 << 20 // much more than the sockets' buffers take
	for name, what := range map[string][]byte{
		"PING": frame(framePing, 0, 0, make([]byte, 8)...), "empty DATA": frame(frameData, 0, 1), "unknown": frame(99, 0, 0, make([]byte, 1<<10)...),
	} {
		for when, answer := range map[string][][]byte{
			"instead of an answer": {settings},
			"after an answer":      {settings, frame(frameHeaders, endHeaders|endStream, 1, 0x88)},
			"within an answer":     {settings, success},
		} {
			if name == "empty DATA" && when != "within an answer" {
				continue // that is an error of its own
			}
			t.Run(name+" "+when, func(t *testing.T) {
				sent := make(chan int, 1)
				s := serveFrames(t, func(c net.Conn) {
					go func() { _, _ = io.Copy(io.Discard, c) }()
					some := bytes.Repeat(what, 32<<10/len(what))
					total := 0
					for err := error(nil); err == nil && total < most; total += len(some) {
						_, err = c.Write(some)
					}
					sent <- total
				}, answer...)
				_, _, err := post(until{t.Context(), time.Now().Add(30 * time.Second)}, s.client, s.URL, small)
				if when == "after an answer" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, http2.ErrTooMuch)
				}
				require.Less(t, <-sent, most)
			})
		}
	}
}
