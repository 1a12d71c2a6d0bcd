package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/http1"
)

// until is a context with a deadline at which it does not end.
type until struct {
	context.Context
	deadline time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.deadline, true }

// The deadline and the end of the context hold in each phase.
func TestEndsInEachPhase(t *testing.T) {
	phases := map[string]func(t *testing.T) (*http1.Client, string){
		"dial": func(t *testing.T) (*http1.Client, string) {
			c := newClient(t)
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return c, "http://192.0.2.1/"
		},
		"handshake": func(t *testing.T) (*http1.Client, string) {
			s := serve(t, func(_ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
			return newClient(t), "https://" + s.address + "/"
		},
		"writing": func(t *testing.T) (*http1.Client, string) {
			done := make(chan struct{})
			s := serve(t, func(net.Conn, *bufio.Reader) { <-done })
			t.Cleanup(func() { close(done) }) // before the server is waited for
			return newClient(t), s.url()
		},
		"headers": func(t *testing.T) (*http1.Client, string) {
			s := serve(t, answers("HTTP/1.1 200 OK\r\nContent-Le"))
			return newClient(t), s.url()
		},
		"status line": func(t *testing.T) (*http1.Client, string) {
			s := serve(t, answers("HTTP/1.1 20"))
			return newClient(t), s.url()
		},
		"body": func(t *testing.T) (*http1.Client, string) {
			s := serve(t, answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfine"))
			return newClient(t), s.url()
		},
		"trailer": func(t *testing.T) (*http1.Client, string) {
			s := serve(t, answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\nX: y\r\n"))
			return newClient(t), s.url()
		},
	}
	for phase, open := range phases {
		body := small
		if phase == "writing" {
			body = bytes.Repeat([]byte("x"), 16<<20)
		}
		t.Run(phase+", deadline", func(t *testing.T) {
			c, url := open(t)
			_, _, err := post(until{t.Context(), time.Now().Add(50 * time.Millisecond)}, c, url, body)
			var timeout net.Error
			require.True(t, errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			require.Zero(t, c.Idle())
		})
		t.Run(phase+", end", func(t *testing.T) {
			c, url := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, _, err := post(ctx, c, url, body)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, c.Idle())
		})
	}
}

// A context that ends after its exchange leaves the connection alone: it may belong to
// another exchange by then.
func TestLateEndDoesNothing(t *testing.T) {
	s, c := serve(t, answers(ok, ok)), newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := post(ctx, c, s.url(), small)
	require.NoError(t, err)
	cancel()
	_, text, err := post(t.Context(), c, s.url(), small)
	require.NoError(t, err)
	require.Equal(t, "fine", text)
	require.Equal(t, 1, s.opened())
}

// If the context ends while the rest of the answer is here already, the connection is
// closed: the abort that has begun would hit the next exchange.
func TestEndWithinAnExchangeEndsItsConnection(t *testing.T) {
	s, c := serve(t, answers(ok), answers(ok)), newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(), bytes.NewReader(small))
	require.NoError(t, err)
	answer, err := c.RoundTrip(r)
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	_, _, err = post(t.Context(), c, s.url(), small)
	require.NoError(t, err)
	require.Equal(t, 2, s.opened())
}

// The end of a context ends all exchanges that have it, or a context made from it, and no
// other ones.
func TestContextOfSeveralExchanges(t *testing.T) {
	asked := make(chan struct{})
	var goOn [5]chan struct{}
	var conns []func(net.Conn, *bufio.Reader)
	for i := range goOn {
		goOn[i] = make(chan struct{})
		conns = append(conns, func(c net.Conn, r *bufio.Reader) {
			if takes(r) {
				asked <- struct{}{}
				<-goOn[i]
				_, _ = io.WriteString(c, ok)
				_, _ = r.ReadByte()
			}
		})
	}
	s, c := serve(t, conns...), newClient(t)
	begin := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, _, err := post(ctx, c, s.url(), small)
			done <- err
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done [5]<-chan error
	for i := range done {
		if i == 4 {
			done[i] = begin(t.Context())
		} else {
			done[i] = begin(context.WithValue(ctx, until{}, i))
		}
		<-asked
	}
	require.Equal(t, 2, c.Awaited())
	close(goOn[1])
	require.NoError(t, <-done[1])
	require.Equal(t, 2, c.Awaited())
	cancel()
	for _, i := range []int{0, 2, 3} {
		require.ErrorIs(t, <-done[i], context.Canceled)
		close(goOn[i])
	}
	require.ErrorIs(t, <-begin(ctx), context.Canceled)
	close(goOn[4])
	require.NoError(t, <-done[4])
	require.Zero(t, c.Awaited())
	require.Equal(t, 1, c.Idle())
}

// The client waits for no server that has stopped reading, not even to close TLS in
// good order.
func TestEndOverTLSWaitsForNobody(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	config, roots := server.TLS.Clone(), x509.NewCertPool()
	roots.AddCert(server.Certificate())
	server.Close()
	for name, c := range map[string]struct {
		serve func(*tls.Conn) // and reads no more
		takes time.Duration
		want  error
	}{
		"no answer": {func(conn *tls.Conn) { _ = conn.Handshake() }, time.Second, os.ErrDeadlineExceeded},
		"a connection that is not kept": {func(conn *tls.Conn) {
			if takes(bufio.NewReader(conn)) {
				_, _ = io.WriteString(conn, ok)
			}
		}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t)
				client.TLS, client.MaxIdle = &tls.Config{RootCAs: roots}, 0
				client.Dial = func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go c.serve(tls.Server(there, config))
					return here, nil
				}
				began := time.Now()
				_, _, err := post(until{t.Context(), began.Add(time.Second)}, client, "https://example.com/", small)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.takes, time.Since(began))
				time.Sleep(time.Minute) // the bubble's: TLS gives the alert up
			})
		})
	}
}
