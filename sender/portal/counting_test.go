package portal_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

// However many pages of a customer count at once, the database counts for one of them. Others
// wait, and too many are refused.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	slow := &bedtest.SlowCounts{Store: b.store, Begun: make(chan struct{}, 100), End: make(chan struct{})}
	var err error
	b.replays, err = replay.New(slow, &replay.Config{Now: b.clock})
	require.NoError(t, err)
	cfg := b.config()
	cfg.Timeout = time.Minute
	b.portal, err = portal.New(b.backend(), [][]byte{portalKey}, cfg)
	require.NoError(t, err)
	b.server = httptest.NewServer(http.StripPrefix(prefix, b.portal))
	t.Cleanup(b.server.Close)
	end := sync.OnceFunc(func() { close(slow.End) })
	defer end()

	const asked, kept = 12, 4
	ada, bob := b.visit("sub_ada"), b.visit("sub_bob")
	pages := make(chan page, 100)
	preview := func(v *visitor) {
		go func() {
			var p page
			defer func() { pages <- p }() // also if there is no answer
			p = v.get("/replays/new?preview=1")
		}()
	}
	for range asked {
		preview(ada)
	}
	<-slow.Begun
	for range asked - kept { // they are answered before any count has ended
		select {
		case p := <-pages:
			require.Equal(t, http.StatusTooManyRequests, p.status, p.text)
			require.Equal(t, "5", p.header.Get("Retry-After"))
			p.has(t, "Some of your pages are counting")
		case <-slow.Begun:
			t.Fatal("the database counts twice at a time for one customer")
		}
	}
	require.Equal(t, http.StatusTooManyRequests, ada.post("/endpoints/new/preview", "types", "*", "filter", `{"data.a": 1}`).status)
	require.Equal(t, http.StatusTooManyRequests, ada.post("/replays").status)
	preview(bob)
	<-slow.Begun // another customer has a turn beside them
	require.Equal(t, http.StatusOK, ada.get("/deliveries").status, "all else is answered")
	end()
	for range kept + 1 {
		require.Equal(t, http.StatusOK, (<-pages).status)
	}
	require.Equal(t, http.StatusOK, ada.get("/replays/new?preview=1").status, "there is room again")
}
