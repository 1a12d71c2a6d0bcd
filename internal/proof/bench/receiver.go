package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/signing"
)

// endpoint is a process that receives POSTs.
type endpoint struct {
	*child.Process
	url string
}

// receiverParams say how the receiver treats the POSTs. If none is set, it verifies them
// and answers.
type receiverParams struct {
	Arrivals bool      // note when each event arrives
	Apply    *location // put each event's effect into a database
	As       applyAs   // with Apply
}

const (
	askCPU      = "cpu"
	askArrivals = "arrivals" // since the last time
	askHanging  = "hanging"  // how many requests to /hang are waiting
)

func (b *bench) startReceiver(ctx context.Context, p receiverParams) (*endpoint, error) {
	r := &endpoint{}
	var err error
	r.Process, err = b.start(ctx, "receiver", p, &r.url)
	return r, err
}

// cpu is the process's CPU time, in µs.
func (r *endpoint) cpu() (us float64, err error) { return us, r.Ask(askCPU, &us) }

// arrivals are the times of each event's first POST.
func (r *endpoint) arrivals() (at map[string]time.Time, err error) {
	return at, r.Ask(askArrivals, &at)
}

// receive is the receiver's process.
func receive() error {
	var p receiverParams
	ctx, parent, err := child.Open(&p)
	if err != nil {
		return err
	}
	h := &handler{noting: p.Arrivals, arrived: map[string]time.Time{}}
	if err := h.open(ctx, p); err != nil {
		return parent.Fail(err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return parent.Fail(err)
	}
	// There are no timeouts: if the server closed a connection while a client takes
	// it, the attempt would fail, which must not be measured.
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	defer func() { _ = srv.Close() }()
	if err := parent.Answer(fmt.Sprintf("http://%s", l.Addr())); err != nil {
		return err
	}
	return child.Answers(parent, func(question string) (any, error) {
		switch question {
		case askCPU:
			return child.CPU(), nil
		case askArrivals:
			return h.takeArrivals(), nil
		case askCalls:
			return h.calls.Swap(0), nil
		case askHanging:
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.hanging, nil
		}
		return nil, fmt.Errorf("the receiver is asked for %q", question)
	})
}

// handler serves the receiver's requests.
type handler struct {
	next   http.Handler
	noting bool

	mu      sync.Mutex
	arrived map[string]time.Time
	hanging int
	calls   atomic.Int64
}

func (h *handler) open(ctx context.Context, p receiverParams) (err error) {
	switch {
	case p.Apply != nil:
		h.next, err = applying(ctx, *p.Apply, p.As)
	default:
		h.next, err = verifying()
	}
	return err
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hang" {
		h.hang(r)
		return
	}
	h.calls.Add(1)
	if h.noting {
		now, id := time.Now(), r.Header.Get("Webhook-Id")
		h.mu.Lock()
		if _, again := h.arrived[id]; !again {
			h.arrived[id] = now
		}
		h.mu.Unlock()
	}
	h.next.ServeHTTP(w, r)
}

// hang waits until the client gives up.
func (h *handler) hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client leaves
	h.mu.Lock()
	h.hanging++
	h.mu.Unlock()
	<-r.Context().Done()
	h.mu.Lock()
	h.hanging--
	h.mu.Unlock()
}

func (h *handler) takeArrivals() map[string]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.arrived
	h.arrived = map[string]time.Time{}
	return all
}

// failingObject is the id of an object whose events are answered with 503.
const failingObject = "fails"

// verifying reads each body, verifies its signature, and answers 200.
func verifying() (http.Handler, error) {
	keys, err := post.Keyring()
	if err != nil {
		return nil, err
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		return nil, err
	}
	buffers := sync.Pool{New: func() any { return new([8 << 10]byte) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := buffers.Get().(*[8 << 10]byte)
		defer buffers.Put(buf)
		n, err := io.ReadFull(r.Body, buf[:])
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if _, err := verifier.Verify(signing.Message{Method: r.Method, Header: r.Header, Body: buf[:n]}); err != nil {
			fmt.Fprintln(os.Stderr, "bench receiver:", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if bytes.Contains(buf[:min(n, 1<<8)], []byte(`"id":"`+failingObject+`"`)) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}), nil
}
