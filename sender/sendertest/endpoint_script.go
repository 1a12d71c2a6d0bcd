package sendertest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// script has the steps still to be played and the requests so far.
type script struct {
	mu    sync.Mutex
	steps []Step
	next  int
	posts []Request
	grown chan struct{} // closed, and made anew, when posts grows
}

func newScript(steps []Step) script {
	return script{steps: append([]Step(nil), steps...), grown: make(chan struct{})}
}

// Set replaces the script: the next request gets the first of steps. It changes neither
// the requests that are being answered nor those recorded.
func (s *script) Set(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.next = append([]Step(nil), steps...), 0
}

// Append adds steps to the end of the script. Steps not played yet come first. If the
// last step is being repeated, the next request gets the first added one.
func (s *script) Append(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// Requests returns copies of the requests recorded so far, in the order in which they
// were received. A request is recorded when it has been read, before it is answered. If
// it was broken off, it has the part of its body that had arrived.
func (s *script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.posts))
	for i, r := range s.posts {
		out[i] = r.clone()
	}
	return out
}

// WaitFor waits until there are at least n requests, and returns all of them. If ctx
// ends before, it returns those so far, and an error that wraps ctx's cause.
func (s *script) WaitFor(ctx context.Context, n int) ([]Request, error) {
	for {
		s.mu.Lock()
		have, grown := len(s.posts), s.grown
		s.mu.Unlock()
		if have >= n {
			return s.Requests(), nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return s.Requests(), fmt.Errorf("sendertest: %d of %d requests received: %w", have, n, context.Cause(ctx))
		}
	}
}

func (s *script) take() Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.steps) == 0:
		return Status(http.StatusOK)
	case s.next < len(s.steps):
		s.next++
	}
	return s.steps[s.next-1]
}

func (s *script) record(r *http.Request, body []byte) {
	post := newRequest(r, body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts = append(s.posts, post)
	close(s.grown)
	s.grown = make(chan struct{})
}
