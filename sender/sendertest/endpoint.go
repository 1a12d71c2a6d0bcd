// Package sendertest helps to test a service that sends. It has a scripted receiver,
// over a real connection ([Endpoint]) or in process ([RoundTripper]). The receiver
// answers, hangs, crawls or breaks as the script says, and keeps the requests.
//
//	ep := sendertest.NewEndpoint(t, sendertest.Status(503), sendertest.Status(200))
//	// … subscribe ep.URL(), publish, dispatch …
//	posts, err := ep.WaitFor(t.Context(), 2)
//
// Steps are played in order, one a request, and the last one repeats. Without a
// step every request is answered with 200.
//
// In a testing/synctest bubble use a [RoundTripper]: connections keep a bubble's
// clock from moving, even those over loopback.
package sendertest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/surehook/surehook/internal/porttest"
)

// Endpoint is a scripted HTTP/1.1 receiver on a loopback address. It is safe for
// concurrent use.
type Endpoint struct {
	script
	t       testing.TB
	server  *httptest.Server
	leave   context.CancelFunc
	playing sync.WaitGroup
}

// NewEndpoint starts an endpoint that is closed when the test ends.
func NewEndpoint(t testing.TB, steps ...Step) *Endpoint {
	t.Helper()
	ep := newEndpoint(t, steps)
	ep.server.Start()
	return ep
}

// NewTLSEndpoint is [NewEndpoint] over TLS. Only the client of [Endpoint.Client] trusts
// its certificate.
func NewTLSEndpoint(t testing.TB, steps ...Step) *Endpoint {
	t.Helper()
	ep := newEndpoint(t, steps)
	ep.server.StartTLS()
	return ep
}

func newEndpoint(t testing.TB, steps []Step) *Endpoint {
	t.Helper()
	open, leave := context.WithCancel(context.Background())
	ep := &Endpoint{script: newScript(steps), t: t, leave: leave}
	ep.server = &httptest.Server{Listener: porttest.Listen(t), Config: &http.Server{
		Handler:     http.HandlerFunc(ep.serve),
		BaseContext: func(net.Listener) context.Context { return open },
		ErrorLog:    log.New(testLog{t}, "", 0),
	}}
	t.Cleanup(ep.Close)
	return ep
}

// URL returns the endpoint's address without a path, such as
// "http://127.0.0.1:40123".
func (ep *Endpoint) URL() string { return ep.server.URL }

// Client returns an HTTP client that trusts the endpoint's certificate. Its
// idle connections are closed with the endpoint.
func (ep *Endpoint) Client() *http.Client { return ep.server.Client() }

// Close breaks off all requests and returns once the endpoint has no goroutine left.
// Further connections are refused until the end of the test: on Linux the system gives
// its port to nobody else. The end of the test calls Close, too. To call it again is
// harmless.
func (ep *Endpoint) Close() {
	ep.leave()
	// The test server's own Close waits for requests that are being answered, and
	// an answer that nobody reads would never end.
	_ = ep.server.Config.Close()
	ep.server.Close()
	ep.playing.Wait()
}

func (ep *Endpoint) serve(w http.ResponseWriter, r *http.Request) {
	ep.playing.Add(1)
	defer ep.playing.Done()

	step := ep.take()
	if err := step.check(); err != nil {
		ep.t.Error(err)
		panic(http.ErrAbortHandler)
	}
	var body []byte
	if !step.early {
		body, _ = io.ReadAll(r.Body) // keep the part that arrived before the client left
	}
	ep.record(r, body)

	ctx := r.Context()
	if sleep(ctx, step.wait) != nil {
		panic(http.ErrAbortHandler)
	}
	switch {
	case step.raw != nil:
		ep.hijack(ctx, w, step)
	case step.handler != nil:
		step.handler(w, withBody(r, body))
		if ctx.Err() != nil { // the handler returned because of that, and has not answered
			panic(http.ErrAbortHandler)
		}
	default:
		answer, err := step.reply(ctx)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		send(w, answer)
	}
}

// hijack plays a step that is not an HTTP answer on the bare connection.
func (ep *Endpoint) hijack(ctx context.Context, w http.ResponseWriter, step Step) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		ep.t.Errorf("sendertest: the connection cannot be taken over: %v", err)
		return
	}
	defer conn.Close()
	step.raw(ctx, conn)
}

// send writes an answer as it becomes available, until the client leaves.
func send(w http.ResponseWriter, answer *http.Response) {
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil || out.Flush() != nil {
				return
			}
		}
		if err != nil { // the end, or it was broken off
			return
		}
	}
}

// testLog is where the HTTP server reports panics of a [Func] and the like.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log("sendertest: " + strings.TrimSpace(string(p)))
	return len(p), nil
}
