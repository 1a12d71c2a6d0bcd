package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A client that has left is no failure of the server: neither the log nor the metrics say so.
func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-database", filepath.Join(t.TempDir(), "test.db"), "-operator-token", "the-operators-own-token"},
		func(string) (string, bool) { return "", false }, io.Discard)
	require.NoError(t, err)
	var log bytes.Buffer
	s, err := newService(t.Context(), o, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer s.close()
	h, err := newServer(s)
	require.NoError(t, err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask := func(ctx context.Context, path string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer the-operators-own-token")
		h.handler.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, path := range []string{"/events?wait=30", "/deliveries", "/console/"} {
		ask(gone, path)
	}
	require.NotContains(t, log.String(), "level=ERROR")
	text := ask(t.Context(), "/metrics")
	require.Contains(t, text, `surehook_http_requests_total{code="499",route="GET /events"} 1`)
	require.Contains(t, text, `surehook_http_requests_total{code="499",route="GET /deliveries"} 1`)
	require.Contains(t, text, `surehook_http_requests_total{code="499",route="console"} 1`)
	require.NotContains(t, text, `code="500"`)

	// It leaves in the middle of the answer, whose header is sent by then.
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	cut := &cutOff{header: http.Header{}, leave: leave}
	r := httptest.NewRequestWithContext(leaving, http.MethodGet, "/notices", nil)
	r.Header.Set("Authorization", "Bearer the-operators-own-token")
	h.handler.ServeHTTP(cut, r)
	require.Equal(t, []int{http.StatusOK}, cut.headers, "net/http would log a second one as a mistake")
	require.NotContains(t, log.String(), "level=ERROR")
	require.Contains(t, ask(t.Context(), "/metrics"), `surehook_http_requests_total{code="499",route="GET /notices"} 1`)
}

// cutOff is the answer to a client that leaves as it begins.
type cutOff struct {
	header  http.Header
	headers []int
	leave   func()
}

func (c *cutOff) Header() http.Header    { return c.header }
func (c *cutOff) WriteHeader(status int) { c.headers = append(c.headers, status) }
func (c *cutOff) Write([]byte) (int, error) {
	c.leave()
	return 0, net.ErrClosed
}
