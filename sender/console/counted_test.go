package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
)

// slowCounts is a store whose counts end when the test lets them.
type slowCounts struct {
	*memory.Store
	begun, end chan struct{}
}

func (s *slowCounts) PreviewReplay(ctx context.Context, f replay.Filter, most int) (replay.Preview, error) {
	s.begun <- struct{}{}
	<-s.end
	return s.Store.PreviewReplay(ctx, f, most)
}

// While two pages count what a replay would send, a third one waits, and is told in time to come
// again.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	slow := &slowCounts{b.store, make(chan struct{}, 10), make(chan struct{})}
	var err error
	b.replays, err = replay.New(slow, nil)
	require.NoError(t, err)
	pages, err := console.New(b.backend(), b.authorize, &console.Config{Timeout: 300 * time.Millisecond})
	require.NoError(t, err)
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/replays/new?preview=1", nil))
		return w
	}
	defer close(slow.end)
	for range 2 {
		go ask()
		<-slow.begun
	}
	third := make(chan *httptest.ResponseRecorder, 1)
	go func() { third <- ask() }()
	select {
	case w := <-third:
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
	case <-slow.begun:
		t.Fatal("the database counts for a third page")
	}
}
