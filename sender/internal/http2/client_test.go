package http2_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
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
	t.Parallel()
	for _, path := range []string{"/headers", "/body"} {
		t.Run(path[1:], func(t *testing.T) {
			t.Parallel() // it waits for the end of its time
			hang, came := make(chan struct{}), make(chan struct{}, 2)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/body" {
					_, _ = io.WriteString(w, "some")
					_ = http.NewResponseController(w).Flush()
				}
				if r.URL.Path != "/" {
					came <- struct{}{}
					<-hang
				}
			})
			defer close(hang)
			_, _, err := post(until{t.Context(), time.Now().Add(3 * time.Second)}, s.client, s.URL+path, small)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			<-came // in that time
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-came
				cancel()
			}()
			_, _, err = post(ctx, s.client, s.URL+path, small)
			require.ErrorIs(t, err, context.Canceled)
			_, _, err = post(t.Context(), s.client, s.URL, small)
			require.NoError(t, err)
			require.EqualValues(t, 3, s.opened.Load(), "what did not answer in time is not used again")
		})
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

// A server says how long headers it takes. Longer ones are not sent.
func TestHeadersOfTheRequestAreBounded(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) }, func(s *server) { s.Config.MaxHeaderBytes = 4 << 10 })
	_, _, err := post(t.Context(), s.client, s.URL, small) // brings the server's settings
	require.NoError(t, err)
	_, _, err = post(t.Context(), s.client, s.URL+"/"+strings.Repeat("x", 16<<10), small)
	require.ErrorIs(t, err, http2.ErrLongRequest)
	require.EqualValues(t, 1, seen.Load())
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
	require.Eventually(t, func() bool { return !s.client.Usable() }, time.Minute, time.Millisecond)
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.EqualValues(t, 4, s.opened.Load())
}

// A kept connection may end when a request was to be made on it. Then nothing was sent, and
// another connection is made at once.
func TestConnectionEndsBeforeItsRequest(t *testing.T) {
	s := serve(t, echo)
	_, _, err := post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	var reused []bool
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if reused = append(reused, got.Reused); got.Reused {
			s.CloseClientConnections()
			require.Eventually(t, func() bool { return !s.client.Usable() }, time.Minute, time.Millisecond)
		}
	}})
	_, text, err := post(ctx, s.client, s.URL, small)
	require.NoError(t, err)
	require.Equal(t, string(small), text)
	require.Equal(t, []bool{true, false}, reused)
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel() // it waits for a sweep
	s := serve(t, echo)
	_, _, err := post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.Equal(t, 1, s.client.Kept())
	s.client.CloseIdleConnections()
	require.Zero(t, s.client.Kept())

	s.client.IdleTimeout = time.Millisecond
	_, _, err = post(t.Context(), s.client, s.URL, small)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.client.Kept() == 0 }, time.Minute, 10*time.Millisecond)
	s.client.IdleTimeout = time.Hour
	s.client.MaxAge = time.Nanosecond
	opened := s.opened.Load()
	for range 3 {
		_, _, err = post(t.Context(), s.client, s.URL, small)
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, s.opened.Load()-opened, "too old for another request")
}
