package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// One caller never has all places, and one who waits gets a place that is left.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(2, 3)
		takes := func(id string, full, ok bool) {
			t.Helper()
			gotFull, gotOK := p.take(id)
			require.Equal(t, []bool{full, ok}, []bool{gotFull, gotOK})
		}
		waits := func(ctx context.Context, id string) chan error {
			got := make(chan error, 1)
			go func() { got <- p.wait(ctx, id) }()
			synctest.Wait()
			return got
		}
		takes("a", false, true)
		takes("a", false, true)
		takes("a", false, false)
		third := waits(t.Context(), "a")
		require.NoError(t, <-waits(t.Context(), "b"))
		takes("c", true, false)

		ctx, end := context.WithCancelCause(t.Context())
		ended := waits(ctx, "c")
		end(errors.New("cancelled"))
		require.EqualError(t, <-ended, "cancelled")
		p.leave("b")
		synctest.Wait()
		require.Empty(t, third, "what is free is for others")
		p.leave("a")
		require.NoError(t, <-third)
		takes("c", false, true)

		p.leave("a")
		p.leave("a")
		p.leave("c")
		require.Empty(t, p.taken)
		require.Zero(t, p.all)
	})
}

// One subscriber's exports leave places to another's, while they run and while they are sent.
func TestExportsOfOneSubscriber(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	s, ask := newTestServer(t)
	customer := func(name string) (id, token string) {
		var made CreatedSubscriber
		require.NoError(t, json.Unmarshal(ask(testToken, http.MethodPost, "/subscribers", `{"name":"`+name+`"}`).Body.Bytes(), &made))
		return made.ID, made.Token
	}
	export := func(token string) (id string) {
		w := ask(token, http.MethodPost, "/jobs", `{"kind":"export_events","input":{}}`)
		require.Equal(t, http.StatusAccepted, w.Code, w.Body)
		return strings.TrimPrefix(w.Header().Get("Location"), "/jobs/")
	}
	status := func(job string) jobs.Status {
		j, err := s.jobs.Get(ctx, jobs.Key{ID: job})
		require.NoError(t, err)
		return j.Status
	}
	succeeds := func(job string) {
		for status(job) != jobs.Succeeded {
			time.Sleep(time.Millisecond) // between two questions; nothing depends on how long
		}
	}
	ada, adas := customer("ada")
	bob, bobs := customer("bob")
	for range exportsOfOne {
		require.NoError(t, s.exporting.wait(ctx, ada))
	}
	one, another := export(adas), export(bobs)
	worked := make(chan error)
	go func() { worked <- s.work(ctx) }()
	succeeds(another)
	require.NotEqual(t, jobs.Succeeded, status(one))
	s.exporting.leave(ada)
	succeeds(one)

	read := func(token, job string) *httptest.ResponseRecorder {
		return ask(token, http.MethodGet, "/jobs/"+job+"/events", "")
	}
	for range exportsOfOne {
		_, ok := s.sending.take(ada)
		require.True(t, ok)
	}
	refused := read(adas, one)
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Equal(t, "5", refused.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, read(bobs, another).Code)
	for s.sending.all < exportsSent {
		_, ok := s.sending.take(newID("sub_"))
		require.True(t, ok)
	}
	refused = read(bobs, another)
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.Equal(t, "5", refused.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, read(testToken, another).Code, "the operator has no limit")
	s.sending.leave(ada)
	for range 2 * exportsSent { // each answer and each refusal leaves the place that it had
		require.Equal(t, http.StatusOK, read(adas, one).Code)
		require.Equal(t, http.StatusNotFound, read(adas, another).Code)
	}
	require.Zero(t, s.sending.taken[bob])
	end()
	require.NoError(t, <-worked)
}

const testToken = "the-operators-own-token-of-tests"

// newTestServer is a server in this process, which does no work, and what asks it.
func newTestServer(t *testing.T) (*server, func(token, method, path, body string) *httptest.ResponseRecorder) {
	t.Helper()
	o, err := parse([]string{"-database", filepath.Join(t.TempDir(), "test.db"), "-operator-token", testToken, "-max-requests", "0"}, func(string) (string, bool) { return "", false }, io.Discard)
	require.NoError(t, err)
	s, err := newService(t.Context(), o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(s.close)
	h, err := newServer(s)
	require.NoError(t, err)
	return h, func(token, method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		h.handler.ServeHTTP(w, r)
		return w
	}
}
