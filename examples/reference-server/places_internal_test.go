package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// One caller never has all places.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := newPlaces(2, 3)
	takes := func(id string, full, ok bool) {
		t.Helper()
		gotFull, gotOK := p.take(id)
		require.Equal(t, []bool{full, ok}, []bool{gotFull, gotOK})
	}
	takes("a", false, true)
	takes("a", false, true)
	takes("a", false, false)
	takes("b", false, true)
	takes("c", true, false)
	p.leave("b")
	takes("a", false, false)
	takes("c", false, true)
	p.leave("a")
	p.leave("a")
	p.leave("c")
	require.Empty(t, p.taken)
	require.Zero(t, p.all)
}

// One subscriber's jobs leave places to those of another.
func TestJobsOfOneSubscriber(t *testing.T) {
	t.Parallel()
	for body, share := range map[string]int{
		`{"kind":"export_events","input":{}}`:        exportsOfOne,
		`{"kind":"replay","input":{}}`:               replaysOfOne,
		`{"kind":"replay","input":{"dry_run":true}}`: dryRunsOfOne,
	} {
		s, ask := newTestServer(t)
		submit := func(token string) {
			w := ask(token, http.MethodPost, "/jobs", body)
			require.Equal(t, http.StatusAccepted, w.Code, w.Body)
			require.Contains(t, body, `"kind":"`+decoded[Job](t, w).Kind+`"`)
		}
		ada, bob := newCustomer(t, ask, "ada"), newCustomer(t, ask, "bob")
		for range share + 1 {
			submit(ada.Token)
		}
		submit(bob.Token)
		begun := make(chan string, share+2)
		kinds := s.jobKinds()
		for i := range kinds {
			kinds[i].Run = func(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
				begun <- run.Job().Owner
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
		}
		work, err := jobs.New[*sql.Tx](s.db.jobs, kinds, &jobs.Config[*sql.Tx]{Lease: time.Hour, DrainTimeout: time.Nanosecond, Logger: slog.New(slog.DiscardHandler)}) // a slow machine must not lose a lease
		require.NoError(t, err)
		ctx, end := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- work.Run(ctx) }()
		got := map[string]int{}
		for range share + 1 {
			got[<-begun]++
		}
		end()
		require.NoError(t, <-worked)
		require.Equal(t, map[string]int{ada.ID: share, bob.ID: 1}, got, body)
		require.Empty(t, begun, body)
	}
}

// One subscriber leaves places to another while exports are sent.
func TestExportsOfOneSubscriber(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	s, ask := newTestServer(t)
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
	first, second := newCustomer(t, ask, "ada"), newCustomer(t, ask, "bob")
	ada, adas, bob, bobs := first.ID, first.Token, second.ID, second.Token
	one, another := export(adas), export(bobs)
	worked := make(chan error)
	go func() { worked <- s.work(ctx) }()
	succeeds(another)
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

// One subscriber leaves memory and the processor to others while it sends large bodies. Who has no
// token sends none.
func TestLargeBodiesOfOneSubscriber(t *testing.T) {
	t.Parallel()
	s, ask := newTestServer(t)
	large := `{"kind":"` + strings.Repeat("x", largeBody) + `"}`
	send := func(token string) *httptest.ResponseRecorder { return ask(token, http.MethodPost, "/jobs", large) }
	// begin returns once more than a large body's first part was read.
	begin := func(token string) (end func() *httptest.ResponseRecorder) {
		body, writer := io.Pipe()
		answered := make(chan *httptest.ResponseRecorder)
		go func() {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/jobs", body)
			r.Header.Set("Authorization", "Bearer "+token)
			s.handler.ServeHTTP(w, r)
			answered <- w
		}()
		half := largeBody + 1
		for _, part := range []string{large[:half], large[half : half+1]} {
			_, err := io.WriteString(writer, part)
			require.NoError(t, err)
		}
		return func() *httptest.ResponseRecorder {
			_, err := io.WriteString(writer, large[half+1:])
			require.NoError(t, err)
			require.NoError(t, writer.Close())
			return <-answered
		}
	}
	adas, bobs := newCustomer(t, ask, "ada").Token, newCustomer(t, ask, "bob").Token
	ends := []func() *httptest.ResponseRecorder{begin(adas), begin(adas)}
	refused := send(adas)
	require.Equal(t, http.StatusTooManyRequests, refused.Code, refused.Body)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Equal(t, http.StatusAccepted, ask(adas, http.MethodPost, "/jobs", `{"kind":"export_events","input":{}}`).Code, "it is small")
	require.Equal(t, http.StatusUnprocessableEntity, send(bobs).Code, "it was looked at")
	for range largeOfAll - len(ends) {
		ends = append(ends, begin(newCustomer(t, ask, "another").Token))
		if len(ends) == largeLooked {
			require.Equal(t, http.StatusUnprocessableEntity, send(bobs).Code, "those that are slow to send do not keep others out")
		}
	}
	refused = send(bobs)
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	require.Equal(t, http.StatusUnprocessableEntity, send(testToken).Code, "the operator has no limit")
	for _, end := range ends {
		require.Equal(t, http.StatusUnprocessableEntity, end().Code)
	}
	for range largeOfAll + 1 { // each leaves the place that it had
		require.Equal(t, http.StatusUnprocessableEntity, send(adas).Code)
	}

	for path := range open {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, untouched{t}))
		require.Equal(t, http.StatusOK, w.Code, path)
	}
}

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("a stranger's body is read")
	return 0, io.EOF
}

func newCustomer(t *testing.T, ask func(token, method, path, body string) *httptest.ResponseRecorder, name string) CreatedSubscriber {
	t.Helper()
	return decoded[CreatedSubscriber](t, ask(testToken, http.MethodPost, "/subscribers", `{"name":"`+name+`"}`))
}

func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
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
