package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// post is what came to an endpoint.
type post struct {
	method string
	path   string // and query
	header http.Header
	body   []byte
}

// endpoint is a callback URL that keeps what is posted to it.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	posts  []post
	answer http.HandlerFunc
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.posts = append(e.posts, post{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
		answer := e.answer
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// answers has it answer with a status from now on.
func (e *endpoint) answers(status int) {
	e.with(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func (e *endpoint) with(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func (e *endpoint) received() []post {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]post{}, e.posts...)
}

// wait returns the posts once there are n.
func (e *endpoint) wait(t *testing.T, n int) []post {
	t.Helper()
	return eventually(t, "posts", e.received, func(all []post) bool { return len(all) >= n })
}
