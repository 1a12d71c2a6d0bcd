package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/history"
)

// fallibleStore is a history's store that fails if it is told to.
type fallibleStore struct {
	history.Store
	mu   sync.Mutex
	away error
}

func (s *fallibleStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

func (s *fallibleStore) Counts(ctx context.Context) (history.Counts, error) {
	c, err := s.Store.Counts(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return c, errors.Join(err, s.away)
}

// While the database is away the console says so, and does not blame itself.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.fallible.fail(errDown)
	for _, path := range []string{"/", "/deliveries", "/subscriptions", "/notices", "/events", "/replays"} {
		p := b.get(path)
		require.Equal(t, http.StatusServiceUnavailable, p.status, path)
		require.Contains(t, p.text, "The database does not answer", path)
		require.Equal(t, "5", p.header.Get("Retry-After"))
	}
	require.Contains(t, b.logged(), "level=ERROR")
	b.fallible.fail(nil)
	require.Equal(t, http.StatusOK, b.get("/").status)
}

// A visitor who has left is no failure of the console, whatever the request failed in. A
// driver's error need not say that its context has ended.
func TestVisitorWhoHasLeft(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask := func(ctx context.Context) {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, prefix+"/", nil)
		b.server.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, err := range []error{context.Canceled, errors.New("interrupted"), errDown} {
		b.fallible.fail(err)
		ask(gone)
	}
	require.NotContains(t, b.logged(), "level=ERROR")
	ask(t.Context())
	require.Contains(t, b.logged(), "level=ERROR")
}
