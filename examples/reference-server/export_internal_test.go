package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
)

// submitted is a job of the operator that nobody runs.
func submitted(t *testing.T, s *server) string {
	t.Helper()
	made, err := s.jobs.Submit(t.Context(), jobs.Submission{Kind: "export_events", Input: json.RawMessage("{}"), Owner: sender.Operator})
	require.NoError(t, err)
	return made.Job.ID
}

// found has a job found events, in some parts.
func found(t *testing.T, s *server, id string, parts int) {
	t.Helper()
	require.NoError(t, s.db.inTx(t.Context(), func(tx *sql.Tx) error {
		for part := range parts {
			if _, err := s.db.exec(t.Context(), tx, "INSERT INTO server_exports VALUES ($1, $2, '{}', $3)", id, part+1, part); err != nil {
				return err
			}
		}
		return nil
	}))
}

// succeed ends a job as its worker would.
func succeed(t *testing.T, s *server, id string) (j jobs.Job) {
	t.Helper()
	require.NoError(t, s.db.inTx(t.Context(), func(tx *sql.Tx) error {
		r, now, err := s.db.jobs.LockTx(t.Context(), tx, jobs.Key{ID: id})
		require.NoError(t, err)
		r.Status, r.FinishedAt, r.Due = jobs.Succeeded, now, time.Time{}
		j = r.Job
		return s.db.jobs.UpdateTx(t.Context(), tx, r)
	}))
	return j
}

// Nothing is kept of an export that was cancelled. The last exports of an owner are kept.
func TestKeptExports(t *testing.T) {
	t.Parallel()
	s, ask := newTestServer(t)
	parts := func(id string) (n int) {
		require.NoError(t, s.db.row(t.Context(), nil, "SELECT count(*) FROM server_exports WHERE job = $1", id).Scan(&n))
		return n
	}
	cancelled := submitted(t, s)
	found(t, s, cancelled, 2)
	other, err := s.jobs.Submit(t.Context(), jobs.Submission{Kind: "export_events", Input: json.RawMessage("{}"), Owner: "sub_other"})
	require.NoError(t, err)
	found(t, s, other.ID, 1)
	s.dropExports(t.Context(), succeed(t, s, other.ID))
	slow := submitted(t, s)
	found(t, s, slow, 1)
	require.Equal(t, http.StatusAccepted, ask(testToken, http.MethodPost, "/jobs/"+cancelled+"/cancel", "").Code)
	require.Zero(t, parts(cancelled))
	var ids []string
	for range exportsOwned + 2 {
		id := submitted(t, s)
		found(t, s, id, 1)
		s.dropExports(t.Context(), succeed(t, s, id))
		ids = append(ids, id)
	}
	require.Equal(t, 1, parts(slow), "it runs yet")
	s.dropExports(t.Context(), succeed(t, s, slow)) // the last one to end
	for i, id := range append(ids, slow, other.ID) {
		status := http.StatusOK
		if i < 3 {
			status = http.StatusGone
		}
		require.Equal(t, status, ask(testToken, http.MethodGet, "/jobs/"+id+"/events", "").Code, i)
	}
}

// renewed counts what is written, and how often there is time anew.
type renewed struct {
	*httptest.ResponseRecorder
	written, times int
}

func (r *renewed) Write(b []byte) (int, error) {
	r.written++
	return r.ResponseRecorder.Write(b)
}

func (r *renewed) SetWriteDeadline(time.Time) error {
	r.times++
	return nil
}

// The reader of an export has time for each part of it anew.
func TestLongExport(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	id := submitted(t, s)
	found(t, s, id, 3)
	succeed(t, s, id)
	w := &renewed{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/jobs/"+id+"/events", nil)
	r.Header.Set("Authorization", "Bearer "+testToken)
	s.handler.ServeHTTP(w, r)
	require.Equal(t, "[{},{},{}]", w.Body.String())
	require.Equal(t, 5, w.written)
	require.Equal(t, w.written, w.times)
}

// While an export runs, nobody knows how many events it will have.
func TestProgressOfAnExport(t *testing.T) {
	t.Parallel()
	s, ask := newTestServer(t)
	require.Equal(t, http.StatusCreated, ask(testToken, http.MethodPost, "/subscribers", `{"name":"ada"}`).Code)
	id := submitted(t, s)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	progress := make(chan jobs.Progress, 1)
	part := func(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
		page, next, err := s.history.Events(ctx, history.EventQuery{Limit: exportPage, Bytes: exportBytes})
		if err != nil {
			return nil, err
		}
		if _, err = s.exportPart(ctx, run, page, next, exportState{}); err != nil {
			return nil, err
		}
		j, err := s.jobs.Get(ctx, jobs.Key{ID: id})
		if err == nil {
			progress <- *j.Progress
		}
		return nil, err
	}
	work, err := jobs.New[*sql.Tx](s.db.jobs, []jobs.Kind[*sql.Tx]{{Name: "export_events", Run: part}}, nil)
	require.NoError(t, err)
	worked := make(chan error)
	go func() { worked <- work.Run(ctx) }()
	require.Equal(t, jobs.Progress{Done: 1}, <-progress)
	end()
	require.NoError(t, <-worked)
}
