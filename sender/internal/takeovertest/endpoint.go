package takeovertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// endpoint answers each POST with 204. While it lets a process hang, that process's
// answers wait.
type endpoint struct {
	url string

	mu    sync.Mutex
	posts map[string][]post // by the process
	hangs map[string]chan struct{}
}

type post struct{ event, attempt string }

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{posts: map[string][]post{}, hangs: map[string]chan struct{}{}}
	s := httptest.NewServer(e)
	e.url = s.URL
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return e
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client goes away
	e.mu.Lock()
	e.posts[r.UserAgent()] = append(e.posts[r.UserAgent()], post{r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Attempt")})
	hangs := e.hangs[r.UserAgent()]
	e.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (e *endpoint) of(process string) []post {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.posts[process])
}

// hang lets a process's attempts hang from now on.
func (e *endpoint) hang(process string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangs[process] = make(chan struct{})
}

// answer ends hang.
func (e *endpoint) answer(process string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.hangs[process])
	delete(e.hangs, process)
}
