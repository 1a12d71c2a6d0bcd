package crash

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/surehook/surehook/signing"
)

// A POST whose signature is older than this on arrival was not signed for this attempt.
// It is long enough for busy machines, and much shorter than the time after which a
// lease is lost.
const freshFor = 10 * time.Second

// post is a POST whose body came whole.
type post struct {
	path    string
	attempt int
	body    string
}

// witness is the endpoint of all posts. It records only what came over the wire.
type witness struct {
	url      string
	server   *http.Server
	verifier *signing.Verifier

	mu      sync.Mutex
	posts   map[string][]post // by event
	cut     int               // bodies that did not come whole
	broken  []string          // promises
	answers bool              // all endpoints succeed
	midBody map[string]func() // kills a process in the middle of a body, by its name
}

func newWitness(secret signing.Secret) (*witness, error) {
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	if err != nil {
		return nil, err
	}
	w := &witness{posts: map[string][]post{}, midBody: map[string]func(){}}
	if w.verifier, err = signing.NewVerifier(keyring, nil); err != nil {
		return nil, err
	}
	// The buffers are small, so that a process can be killed while it writes.
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if own := c.Control(func(fd uintptr) { err = receiveBuffer(fd, 4<<10) }); own != nil {
			return own
		}
		return err
	}}
	listener, err := small.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.url = "http://" + listener.Addr().String()
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(listener) }()
	return w, nil
}

func (w *witness) close() { _ = w.server.Close() }

func (w *witness) broke(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// killMidBody kills the posting process, if it must be killed here, when the body has begun
// to come. If the kernel has the rest by then, which is rare, the body comes whole.
func (w *witness) killMidBody(r *http.Request) {
	w.mu.Lock()
	kill := w.midBody[r.UserAgent()]
	delete(w.midBody, r.UserAgent())
	w.mu.Unlock()
	if kill != nil {
		kill()
	}
}

// ServeHTTP notes a POST before it answers.
func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Webhook-Id")
	if r.ContentLength >= largeBody {
		w.killMidBody(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.mu.Lock()
		w.cut++
		w.mu.Unlock()
		return
	}
	verified, err := w.verifier.Verify(signing.Message{Method: r.Method, URL: w.url + r.URL.RequestURI(), Header: r.Header, Body: body})
	if err != nil {
		w.broke("%s: posted with a signature that does not verify: %v", id, err)
	} else if age := time.Since(verified.Timestamp); age > freshFor {
		w.broke("%s: posted with a signature of %s ago", id, age)
	}
	attempt, err := strconv.Atoi(r.Header.Get("Webhook-Attempt"))
	if err != nil {
		w.broke("%s: the number of its attempt: %v", id, err)
	}
	w.mu.Lock()
	w.posts[id] = append(w.posts[id], post{r.URL.Path, attempt, string(body)})
	well := w.answers || !strings.HasSuffix(r.URL.Path, failing)
	w.mu.Unlock()
	if !well {
		http.Error(rw, "as it must", http.StatusInternalServerError)
	}
}
