package kill_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

const (
	refusing = "/refusing" // an endpoint that never succeeds
	slow     = "/slow"     // one that is slow
	slowToo  = "/slow-too" // one whose posts are not counted
)

// endpoint applies events in its own database, and misbehaves: it fails at random, and
// breaks off after it has applied.
type endpoint struct {
	db     *sql.DB
	server *httptest.Server
	inner  http.Handler
	mu     sync.Mutex
	posts  map[string][]post // by event id
	slowly map[string]int    // how many posts wait for the slow one's answers, by their senders' User-Agent
}

type post struct{ body string }

func newEndpoint(t *testing.T, path string) *endpoint {
	db := openSQLite(t, path)
	require.NoError(t, dedup.Migrate(t.Context(), db))
	_, err := db.Exec("CREATE TABLE effects (thing TEXT NOT NULL)")
	require.NoError(t, err)
	r := &endpoint{db: db, posts: map[string][]post{}, slowly: map[string]int{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

func (r *endpoint) verifyWith(t *testing.T, secret signing.Secret) {
	rcv := newReceiver(t, receiver.SQL(r.db, nil), dedup.New(), secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.Object.ID)
		return err
	}))
}

func (r *endpoint) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender died while it sent
	}
	r.mu.Lock()
	id := req.Header.Get("Webhook-Id")
	r.posts[id] = append(r.posts[id], post{string(body)})
	inner := r.inner
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	switch req.URL.Path {
	case slow:
		r.waits(req.UserAgent(), 1)
		<-time.After(50 * time.Millisecond)
		r.waits(req.UserAgent(), -1)
	case slowToo:
		<-time.After(50 * time.Millisecond)
	}
	chance := rand.IntN(10)
	if strings.HasSuffix(req.URL.Path, refusing) {
		chance = 0
	}
	switch chance {
	case 0:
		http.Error(w, "in trouble", http.StatusInternalServerError)
	case 1: // applied, and nobody learns of it
		inner.ServeHTTP(httptest.NewRecorder(), req)
		panic(http.ErrAbortHandler)
	default:
		inner.ServeHTTP(w, req)
	}
}

// waits counts posts that wait for the slow one's answers, and returns how many of a sender do.
func (r *endpoint) waits(sender string, more int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowly[sender] += more
	return r.slowly[sender]
}

// posted returns the posts so far. Handlers whose senders died may end at any time.
func (r *endpoint) posted() map[string][]post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.posts)
}
