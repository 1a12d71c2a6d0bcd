package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

var nothing = work(func(context.Context, *run) (json.RawMessage, error) { return nil, nil })

func TestSubmitRefuses(t *testing.T) {
	b := newBed(t)
	k := nothing
	k.Check = func(input json.RawMessage) error {
		if string(input) == "0" {
			return errors.New("it must not be 0")
		}
		return nil
	}
	j := b.jobs(config{MaxInputBytes: 10}, k)
	for _, c := range []struct {
		name string
		s    jobs.Submission
		is   error
		says string
	}{
		{"unknown kind", jobs.Submission{Kind: "play"}, jobs.ErrKind, `"play"`},
		{"not JSON", jobs.Submission{Kind: "work", Input: json.RawMessage("{")}, jobs.ErrInvalid, "input is not valid JSON"},
		{"not UTF-8", jobs.Submission{Kind: "work", Input: json.RawMessage("\"\xff\"")}, jobs.ErrInvalid, "input is not valid JSON in UTF-8"},
		{"too large", jobs.Submission{Kind: "work", Input: json.RawMessage(`"` + strings.Repeat("a", 9) + `"`)}, jobs.ErrInvalid, "input has 11 bytes: at most 10"},
		{"what the kind refuses", jobs.Submission{Kind: "work", Input: json.RawMessage("0")}, jobs.ErrInvalid, "it must not be 0"},
		{"callback without announcer", jobs.Submission{Kind: "work", Owner: "sub_a", CallbackURL: "https://example.com/"}, jobs.ErrInvalid, "Announcer is nil"},
		{"callback without owner", jobs.Submission{Kind: "work", CallbackURL: "https://example.com/"}, jobs.ErrInvalid, "without an owner"},
		{"odd owner", jobs.Submission{Kind: "work", Owner: "a b"}, jobs.ErrInvalid, "owner"},
		{"long key", jobs.Submission{Kind: "work", IdempotencyKey: strings.Repeat("k", 256)}, jobs.ErrInvalid, "idempotency key"},
		{"odd key", jobs.Submission{Kind: "work", IdempotencyKey: "\x00"}, jobs.ErrInvalid, "idempotency key"},
		{"odd scope", jobs.Submission{Kind: "work", IdempotencyKey: "k", KeyScope: "\xff"}, jobs.ErrInvalid, "key scope"},
	} {
		_, err := j.Submit(t.Context(), c.s)
		require.ErrorIs(t, err, c.is, c.name)
		require.ErrorContains(t, err, c.says, c.name)
	}
	require.Empty(t, b.all(j), "what was refused left nothing")
}

func TestIdempotencyKey(t *testing.T) {
	b := newBed(t)
	j := b.jobs(config{}, nothing, kind{Name: "other", Run: nothing.Run})
	s := jobs.Submission{Kind: "work", Input: json.RawMessage(`1`), Owner: "sub_a", IdempotencyKey: "k", KeyScope: "sub_a"}
	first, err := j.Submit(t.Context(), s)
	require.NoError(t, err)
	require.False(t, first.Duplicate)
	again, err := j.Submit(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, jobs.Submitted{Job: first.Job, Duplicate: true}, again)
	for name, change := range map[string]func(*jobs.Submission){
		"kind":  func(s *jobs.Submission) { s.Kind = "other" },
		"input": func(s *jobs.Submission) { s.Input = json.RawMessage(`2`) },
		"bytes": func(s *jobs.Submission) { s.Input = json.RawMessage(`1 `) },
		"owner": func(s *jobs.Submission) { s.Owner = "sub_b" },
	} {
		other := s
		change(&other)
		_, err = j.Submit(t.Context(), other)
		require.ErrorIs(t, err, jobs.ErrIdempotencyKey, name)
	}
	s.KeyScope = "sub_b"
	other, err := j.Submit(t.Context(), s)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, other.ID, "in another scope")
	require.Len(t, b.all(j), 2)
}

// A repeat has the first answer, whatever is allowed by now, and the announcer is not asked
// again about its URL.
func TestRepeatIsNotJudgedAnew(t *testing.T) {
	b := newBed(t)
	a := &admits{Store: b.store}
	s := jobs.Submission{Kind: "work", Input: json.RawMessage(`"long"`), Owner: "sub_a", CallbackURL: "https://example.com/", IdempotencyKey: "k"}
	first, err := b.jobs(config{Announcer: a}, nothing).Submit(t.Context(), s)
	require.NoError(t, err)
	strict := nothing
	strict.Check = func(json.RawMessage) error { return errors.New("it is refused by now") }
	other := kind{Name: "other", Run: nothing.Run}
	for name, c := range map[string]struct {
		cfg     config
		kind    kind
		refuses error
	}{
		"nothing has changed":   {config{Announcer: a}, nothing, nil},
		"the URL is refused":    {config{Announcer: a}, nothing, errors.New("a bad URL")},
		"no announcer":          {config{}, nothing, nil},
		"the kind is gone":      {config{Announcer: a}, other, nil},
		"the kind refuses it":   {config{Announcer: a}, strict, nil},
		"the input is too long": {config{Announcer: a, MaxInputBytes: 1}, nothing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a.refuses, a.asked = c.refuses, 0
			j := b.jobs(c.cfg, c.kind)
			again, err := j.Submit(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, jobs.Submitted{Job: first.Job, Duplicate: true}, again)
			other := s
			other.CallbackURL += "other"
			_, err = j.Submit(t.Context(), other)
			require.ErrorIs(t, err, jobs.ErrIdempotencyKey)
			require.Zero(t, a.asked)
		})
	}
	require.Len(t, b.all(b.jobs(config{}, nothing)), 1)
}

// admits is an announcer that counts how often it was asked about a URL.
type admits struct {
	jobs.Store[tx]
	refuses error
	asked   int
}

func (a *admits) AdmitTx(_ context.Context, _ tx, _, url string) (string, error) {
	a.asked++
	return url, a.refuses
}

func (*admits) CompletedTx(context.Context, tx, jobs.Job) error { return nil }

func TestSubmitTx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		j := b.jobs(config{}, nothing)
		b.start(j)
		refused := errors.New("refused")
		require.ErrorIs(t, b.under.InTx(t.Context(), func(tx tx) error {
			_, err := j.SubmitTx(t.Context(), tx, jobs.Submission{Kind: "work", IdempotencyKey: "k"})
			require.NoError(t, err)
			return refused
		}), refused)
		require.Empty(t, b.all(j))
		var job jobs.Submitted
		require.NoError(t, b.under.InTx(t.Context(), func(tx tx) (err error) {
			job, err = j.SubmitTx(t.Context(), tx, jobs.Submission{Kind: "work", IdempotencyKey: "k"})
			return err
		}))
		require.False(t, job.Duplicate)
		time.Sleep(time.Second) // workers poll
		synctest.Wait()
		require.Equal(t, jobs.Succeeded, b.get(j, job.ID).Status)
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var causes noted[error]
		var steps noted[error]
		ended := func(ctx context.Context, r *run) { causes.add(context.Cause(ctx)) }
		k := work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			<-ctx.Done()
			ended(ctx, r)
			steps.add(r.InTx(context.WithoutCancel(ctx), func(tx, *jobs.Step) error { return nil }))
			if string(r.Job().Input) == "1" {
				return json.RawMessage(`"all was done"`), nil
			}
			return nil, errors.New("gave up")
		})
		var finished noted[jobs.Job]
		var log lockedLog
		j := b.jobs(config{Hooks: jobs.Hooks{Finished: func(_ context.Context, j jobs.Job) { finished.add(j) }}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, k)
		queued := b.submit(j, jobs.Submission{})
		got, err := j.Cancel(t.Context(), jobs.Key{ID: queued.ID})
		require.NoError(t, err)
		require.Equal(t, jobs.Cancelled, got.Status)
		got.Input = json.RawMessage("null")
		require.Equal(t, got, b.get(j, queued.ID))
		require.Len(t, finished.list(), 1)
		_, err = j.Cancel(t.Context(), jobs.Key{ID: queued.ID})
		require.ErrorIs(t, err, jobs.ErrFinished)
		require.ErrorContains(t, err, "cancelled")
		_, err = j.Cancel(t.Context(), jobs.Key{ID: "job_none"})
		require.ErrorIs(t, err, jobs.ErrNotFound)
		_, err = j.Cancel(t.Context(), jobs.Key{ID: queued.ID, Owner: "sub_other"})
		require.ErrorIs(t, err, jobs.ErrNotFound)

		b.start(j)
		elsewhere := b.jobs(config{}, k)
		for _, c := range []struct {
			by     *jobs.Jobs[tx]
			input  string
			within time.Duration
			want   jobs.Status
		}{{j, "0", 0, jobs.Cancelled}, {elsewhere, "0", 10 * time.Second, jobs.Cancelled}, {j, "1", 0, jobs.Succeeded}} {
			job := b.submit(j, jobs.Submission{Input: json.RawMessage(c.input)})
			synctest.Wait()
			got, err := c.by.Cancel(t.Context(), jobs.Key{ID: job.ID})
			require.NoError(t, err)
			require.Equal(t, jobs.Running, got.Status)
			require.True(t, got.CancelRequested)
			_, err = c.by.Cancel(t.Context(), jobs.Key{ID: job.ID})
			require.True(t, err == nil || errors.Is(err, jobs.ErrFinished), "again: %v", err)
			time.Sleep(c.within)
			synctest.Wait()
			got = b.get(j, job.ID)
			require.Equal(t, c.want, got.Status)
			require.Empty(t, got.Error)
		}
		for _, cause := range causes.list() {
			require.ErrorIs(t, cause, jobs.ErrCancelled)
		}
		for _, err := range steps.list() {
			require.ErrorIs(t, err, jobs.ErrCancelled, "no step is begun any more")
		}
		require.Len(t, steps.list(), 3)
		require.NotContains(t, log.String(), "level=WARN", "nothing has failed")
	})
}

// A job that was cancelled while its process was lost ends without another try.
func TestCancelledWithoutWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		calls := 0
		paused, paralysed := newPauser(b.store)
		k := work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
			calls++
			paralysed(true)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		dead, err := jobs.New[tx](paused, []kind{k}, &config{Logger: quiet})
		require.NoError(t, err)
		job := b.submit(dead, jobs.Submission{})
		b.start(dead)
		synctest.Wait()
		j := b.jobs(config{}, k)
		_, err = j.Cancel(t.Context(), jobs.Key{ID: job.ID})
		require.NoError(t, err)
		b.start(j)
		require.Equal(t, jobs.Cancelled, b.finished(j, job.ID).Status)
		require.Equal(t, 1, calls)
	})
}

func TestListAndPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		j := b.jobs(config{Retention: 24 * time.Hour}, nothing)
		large := json.RawMessage(`"` + strings.Repeat("x", 700<<10) + `"`) // more of them than one transaction removes
		var ids []string
		for i := range 7 {
			owner := []string{"sub_a", "sub_b"}[i%2]
			ids = append(ids, b.submit(j, jobs.Submission{Owner: owner, Input: large}).ID)
		}
		var got []string
		cursor, pages := "", 0
		for more := true; more; more = cursor != "" {
			page, next, err := j.List(t.Context(), jobs.Query{Owner: "sub_a", Cursor: cursor, Limit: 2})
			require.NoError(t, err)
			for _, job := range page {
				require.Nil(t, job.Input)
				got = append(got, job.ID)
			}
			cursor, pages = next, pages+1
		}
		require.Equal(t, []string{ids[6], ids[4], ids[2], ids[0]}, got)
		require.Equal(t, 2, pages, "a full last page has no cursor")
		for _, q := range []jobs.Query{{Limit: -1}, {Limit: 201}, {Cursor: "?"}, {Cursor: "ajEuMA"}, {Cursor: "ajIuMQ"}, {Cursor: "ajEuMDU"}, {Status: "lost"}} {
			_, _, err := j.List(t.Context(), q)
			require.ErrorIs(t, err, jobs.ErrInvalid, "%+v", q)
		}
		b.start(j)
		time.Sleep(23 * time.Hour)
		require.Len(t, b.all(j), 7)
		time.Sleep(time.Hour + 11*time.Minute)
		synctest.Wait()
		require.Empty(t, b.all(j), "Run prunes")
	})
}

func TestNewRefuses(t *testing.T) {
	b := newBed(t)
	_, err := jobs.New[tx](nil, nil, &config{Lease: 1, Poll: -1, MaxStateBytes: -1})
	for _, says := range []string{"needs a store", "at least one kind", "Lease is 1ns", "Poll is -1ns", "MaxStateBytes is -1"} {
		require.ErrorContains(t, err, says)
	}
	_, err = jobs.New(b.store, []kind{{Name: "a b", Concurrency: -1, Timeout: -1, MaxTries: -1}, nothing, nothing}, nil)
	for _, says := range []string{`"a b": its name`, "Run is nil", "Concurrency is -1", "Timeout is -1ns", "MaxTries is -1", `"work" is given twice`} {
		require.ErrorContains(t, err, says)
	}
}
