package console_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/replay"
)

// While two pages count what a replay would send, a third one waits. At the end of its time it is
// answered that it should come again.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	slow := &bedtest.SlowCounts{Store: b.store, Begun: make(chan struct{}, 10), End: make(chan struct{})}
	var err error
	b.replays, err = replay.New(slow, nil)
	require.NoError(t, err)
	pages, err := console.New(b.backend(), b.authorize, &console.Config{Timeout: 6 * time.Second})
	require.NoError(t, err)
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/replays/new?preview=1", nil))
		return w
	}
	defer close(slow.End)
	for range 2 {
		go ask()
		<-slow.Begun // in that time
	}
	third := make(chan *httptest.ResponseRecorder, 1)
	go func() { third <- ask() }()
	select {
	case w := <-third:
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
	case <-slow.Begun:
		t.Fatal("the database counts for a third page")
	}
}
