package http2_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
)

// Frames of HTTP/2: RFC 9113, section 6.
const (
	frameData, frameHeaders, framePriority, frameReset, frameSettings, framePing, frameGoAway, frameWindowUpdate = 0, 1, 2, 3, 4, 6, 7, 8

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

// stuck is a connection whose other side reads no more. It takes as many bytes as it has room for.
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
	t.Parallel()
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
			t.Parallel() // it waits until the connection is ended
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
	require.Eventually(t, func() bool { return !s.client.Usable() }, time.Minute, time.Millisecond)
	_, err = io.ReadAll(got.Body)
	require.ErrorContains(t, err, "FLOW_CONTROL_ERROR")
}

// The errors tell what the server has said that it has not processed.
func TestRefused(t *testing.T) {
	// words are what a server writes into a GOAWAY, of a request that it has taken.
	words := func(text string) [][]byte {
		return [][]byte{frame(frameGoAway, 0, 0, append([]byte{3: 1, 7: 0}, text...)...)}
	}
	for name, c := range map[string]struct {
		answer [][]byte
		ends   bool // and the connection, behind the answer
		want   error
	}{
		"the stream":              {[][]byte{frame(frameReset, 0, 1, 0, 0, 0, 7)}, false, http2.ErrRefused},
		"by the connection's end": {[][]byte{frame(frameGoAway, 0, 0, make([]byte, 8)...)}, false, http2.ErrRefused},
		"for another reason":      {[][]byte{frame(frameReset, 0, 1, 0, 0, 0, 2)}, false, http2.ErrReset},
		"after it was answered":   {[][]byte{success, frame(frameReset, 0, 1, 0, 0, 0, 7)}, false, http2.ErrReset},
		"in words":                {words("REFUSED_STREAM"), true, http2.ErrReset},
		"in words, as unsent":     {words("client conn not usable"), true, http2.ErrReset},
		"in words, as too long":   {words("request header list larger"), true, http2.ErrReset},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveFrames(t, func(conn net.Conn) {
				if c.ends {
					_ = conn.(*tls.Conn).CloseWrite()
				}
			}, append([][]byte{settings}, c.answer...)...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // nobody answers a second request
			defer cancel()
			_, _, err := post(ctx, s.client, s.URL, small)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, errors.Is(c.want, http2.ErrRefused), errors.Is(err, http2.ErrRefused))
		})
	}
}

// A server may answer before it reads. A body that it has promised to take is sent to its
// end, unless it says that it wants no more.
func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	const length = 200 << 10 // more than a server allows without being asked
	for name, c := range map[string]struct {
		answer [][]byte
		whole  bool
		by     func(context.Context, http.RoundTripper, string, []byte) (*http.Response, string, error)
	}{
		"alone":              {[][]byte{frame(frameHeaders, endHeaders|endStream, 1, 0x88)}, true, post},
		"with a body":        {[][]byte{success, frame(frameData, endStream, 1, 'f', 'i', 'n', 'e')}, true, post},
		"with more of it":    {[][]byte{success, frame(frameData, 0, 1, make([]byte, 10<<10)...)}, true, postAndTakeLittle},
		"and refused":        {[][]byte{frame(frameHeaders, endHeaders|endStream, 1, 0x88), frame(frameReset, 0, 1, 0, 0, 0, 0)}, false, post},
		"refused, with more": {[][]byte{success, frame(frameData, 0, 1, make([]byte, 10<<10)...), frame(frameReset, 0, 1, 0, 0, 0, 0)}, false, postAndTakeLittle},
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
			got, _, err := c.by(t.Context(), s.client, s.URL, make([]byte, length))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, got.StatusCode)
			if c.whole {
				require.EqualValues(t, length, <-took)
			}
		})
	}
	t.Run("that is never read", func(t *testing.T) {
		t.Parallel() // these wait for the end of their time
		s := serveFrames(t, nil, settings, frame(frameHeaders, endHeaders|endStream, 1, 0x88))
		_, _, err := post(until{t.Context(), time.Now().Add(3 * time.Second)}, s.client, s.URL, make([]byte, length))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("that is never read, with an answer without an end", func(t *testing.T) {
		t.Parallel()
		const most = 8 << 20
		sent := make(chan int, 1)
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			some, total := make([]byte, 32<<10), 0
			for err := error(nil); err == nil && total < most; total += len(some) {
				_, err = w.Write(some)
			}
			sent <- total
		})
		_, _, err := postAndTakeLittle(until{t.Context(), time.Now().Add(3 * time.Second)}, s.client, s.URL, make([]byte, most)) // more than net/http's servers take unasked
		require.ErrorIs(t, err, http1.ErrNotTaken)
		require.Less(t, <-sent, 2<<20)
	})
	t.Run("that is never read, with more of it", func(t *testing.T) {
		t.Parallel()
		s := serveFrames(t, nil, settings, success, frame(frameData, 0, 1, make([]byte, 10<<10)...))
		_, _, err := postAndTakeLittle(until{t.Context(), time.Now().Add(3 * time.Second)}, s.client, s.URL, make([]byte, length))
		require.ErrorIs(t, err, http1.ErrNotTaken)
	})
}

// postAndTakeLittle makes a request, and reads only the beginning of the answer.
func postAndTakeLittle(ctx context.Context, c http.RoundTripper, url string, body []byte) (*http.Response, string, error) {
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
	little := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, little); err != nil {
		return nil, "", err
	}
	return answer, string(little), answer.Body.(interface{ Taken() error }).Taken()
}

// counter counts what is written.
type counter struct{ n atomic.Int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// A server that goes on sending what is no answer is not read any more, whether an answer
// is waited for or not.
func TestServerThatSendsTooMuch(t *testing.T) {
	before, lines := log.Writer(), new(counter)
	log.SetOutput(lines) // net/http writes of each frame for which it has no use
	t.Cleanup(func() { log.SetOutput(before) })
	const most = 16 << 20 // much more than the sockets' buffers take
	for name, what := range map[string][]byte{
		"PING": frame(framePing, 0, 0, make([]byte, 8)...), "PRIORITY": frame(framePriority, 0, 3, make([]byte, 5)...), "empty DATA": frame(frameData, 0, 1), "unknown": frame(99, 0, 0, make([]byte, 1<<10)...),
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
				// A read of 4 KiB has 292 frames. When a stream ends, another read may follow.
				require.Less(t, lines.n.Swap(0), int64(1000), "lines in the log")
			})
		}
	}
}
