package scenario_test

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

const (
	refusing = "/refusing" // an endpoint that never succeeds
	slow     = "/slow"     // one that is slow
)

// crashReceiver applies events in its own database, and misbehaves.
type crashReceiver struct {
	db     *sql.DB
	server *httptest.Server
	inner  http.Handler
	mu     sync.Mutex
	posts  map[string][]post // by event id
}

type post struct{ body string }

func newCrashReceiver(t *testing.T, path string) *crashReceiver {
	db, err := sql.Open("sqlite", crashDSN(path))
	require.NoError(t, err)
	require.NoError(t, dedup.Migrate(t.Context(), db))
	_, err = db.Exec("CREATE TABLE effects (thing TEXT NOT NULL)")
	require.NoError(t, err)
	r := &crashReceiver{db: db, posts: map[string][]post{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
		_ = db.Close()
	})
	return r
}

func (r *crashReceiver) verifyWith(secret signing.Secret) {
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keyring, nil)
	if err != nil {
		panic(err)
	}
	rcv, err := receiver.New(verifier, receiver.SQL(r.db, nil), dedup.New(), &receiver.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = rcv.Handler(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.Object.ID)
		return err
	})
}

func (r *crashReceiver) serve(w http.ResponseWriter, req *http.Request) {
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
	if strings.HasSuffix(req.URL.Path, slow) {
		time.Sleep(50 * time.Millisecond)
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

// posted returns the posts so far. Handlers whose senders died may end at any time.
func (r *crashReceiver) posted() map[string][]post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.posts)
}

func column(t *testing.T, db *sql.DB, query string) (values []string) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var v string
		require.NoError(t, rows.Scan(&v))
		values = append(values, v)
	}
	require.NoError(t, rows.Err())
	return values
}
