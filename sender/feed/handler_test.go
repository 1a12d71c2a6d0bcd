package feed_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

// mount serves a feed at /events. A token is the viewer's id.
func mount(t *testing.T, b *bed, writeTimeout time.Duration) *httptest.Server {
	t.Helper()
	h, err := feed.NewHandler(b.reader, func(r *http.Request) (string, error) {
		switch token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); token {
		case "":
			return "", feed.ErrUnauthorized
		case "forbidden":
			return "", feed.ErrForbidden
		case "broken":
			return "", errors.Join(errBroken, sender.ErrNotFound)
		case "forgotten":
			return "", nil
		default:
			return token, nil
		}
	}, &feed.HandlerConfig{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/events", h)
	mux.Handle("/events/{id}", h)
	server := httptest.NewUnstartedServer(mux)
	server.Config.WriteTimeout = writeTimeout
	server.Start()
	t.Cleanup(server.Close)
	return server
}

type document struct {
	Data       []json.RawMessage `json:"data"`
	NextCursor string            `json:"next_cursor"`
	Type       string            `json:"type"`
	Title      string            `json:"title"`
	Status     int               `json:"status"`
	Detail     string            `json:"detail"`
	Errors     []struct{ Location, Message string }
}

func get(t *testing.T, server *httptest.Server, method, path, token string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, body
}

func page(t *testing.T, server *httptest.Server, path, token string) document {
	t.Helper()
	resp, body := get(t, server, http.MethodGet, path, token)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	var d document
	require.NoError(t, json.Unmarshal(body, &d))
	require.NotEmpty(t, d.NextCursor)
	require.NotNil(t, d.Data, "an empty list, and not null")
	return d
}

func TestOverHTTP(t *testing.T) {
	b := newBed(t, nil, "sub_a", "sub_b")
	empty := page(t, mount(t, b, 900*time.Millisecond), "/events?wait=1", "sub_a") // longer than the server's WriteTimeout
	require.Empty(t, empty.Data)
	server := mount(t, b, 0)
	id, other := b.publish("sub_a"), b.publish("sub_b")
	stored, err := b.store.Event(t.Context(), id)
	require.NoError(t, err)
	d := page(t, server, "/events?limit=200&after="+empty.NextCursor, "sub_a")
	require.Len(t, d.Data, 1)
	require.Equal(t, string(stored.Body), string(d.Data[0]), "the bytes that are posted")
	require.Len(t, page(t, server, "/events", sender.Operator).Data, 2)

	resp, body := get(t, server, http.MethodGet, "/events/"+id, "sub_a")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, string(stored.Body), string(body))
	resp, _ = get(t, server, http.MethodGet, "/events/"+other, "sub_a")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, body = get(t, server, http.MethodHead, "/events", "sub_a")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Empty(t, body)

	_, err = b.store.Redact(t.Context(), history.RedactParams{Subscriber: "sub_a", Limit: 10})
	require.NoError(t, err)
	d = page(t, server, "/events", "sub_a")
	require.JSONEq(t, `{"id":"`+id+`","type":"thing.changed","object":{"type":"thing","id":"1"},"version":1,"redacted":true}`, string(d.Data[0]))
}

func TestProblems(t *testing.T) {
	b := newBed(t, nil, "sub_a")
	server := mount(t, b, 0)
	old := page(t, server, "/events", "sub_a").NextCursor
	b.publish("")
	b.prune()
	for _, c := range []struct {
		method, path, token string
		status              int
		locations           []string
	}{
		{"GET", "/events", "", 401, nil},
		{"GET", "/events", "forbidden", 403, nil},
		{"GET", "/events", "sub_gone", 403, nil},
		{"GET", "/events", "broken", 503, nil},
		{"GET", "/events", "forgotten", 500, nil},
		{"GET", "/events/evt_1", "forgotten", 500, nil},
		{"GET", "/events/evt_1", "sub_a", 404, nil},
		{"POST", "/events", "sub_a", 405, nil},
		{"GET", "/events?after=x", "sub_a", 422, []string{"query.after"}},
		{"GET", "/events?after=" + old + "%", "sub_a", 422, []string{"query.after"}},
		{"GET", "/events?after=" + old + ";limit=1", "sub_a", 422, []string{"query.after"}},
		{"GET", "/events?limit=0", "sub_a", 422, []string{"query.limit"}},
		{"GET", "/events?limit=201", "sub_a", 422, []string{"query.limit"}},
		{"GET", "/events?limit=-1", "sub_a", 422, []string{"query.limit"}},
		{"GET", "/events?limit=1.5", "sub_a", 422, []string{"query.limit"}},
		{"GET", "/events?limit=1&limit=2", "sub_a", 422, []string{"query.limit"}},
		{"GET", "/events?wait=31", "sub_a", 422, []string{"query.wait"}},
		{"GET", "/events?wait=-1", "sub_a", 422, []string{"query.wait"}},
		{"GET", "/events?wait=9223372036854775807", "sub_a", 422, []string{"query.wait"}},
		{"GET", "/events?wait=x", "sub_a", 422, []string{"query.wait"}},
		{"GET", "/events?cursor=" + old, "sub_a", 422, []string{"query.cursor"}},
		{"GET", "/events?after=x&limit=201", "sub_a", 422, []string{"query.after", "query.limit"}},
		{"GET", "/events?after=" + old, "sub_a", 410, nil},
	} {
		resp, body := get(t, server, c.method, c.path, c.token)
		require.Equal(t, c.status, resp.StatusCode, "%s as %q: %s", c.path, c.token, body)
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		var d document
		require.NoError(t, json.Unmarshal(body, &d))
		require.Equal(t, c.status, d.Status)
		require.NotEmpty(t, d.Title)
		var locations []string
		for _, e := range d.Errors {
			require.NotEmpty(t, e.Message)
			locations = append(locations, e.Location)
		}
		require.Equal(t, c.locations, locations, c.path)
		switch c.status {
		case 401:
			require.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
		case 405:
			require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
		case 410:
			require.Regexp(t, "cursor-expired$", d.Type)
			require.Empty(t, page(t, server, "/events?after="+d.NextCursor, "sub_a").Data)
		case 503:
			require.NotEmpty(t, resp.Header.Get("Retry-After"))
			require.NotContains(t, string(body), "fire")
		}
	}
	b.spy.broken.Store(true)
	resp, body := get(t, server, "GET", "/events", "sub_a")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "5", resp.Header.Get("Retry-After"))
	require.NotContains(t, string(body), "fire", "the cause is for the log")
}
