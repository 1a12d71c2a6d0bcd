package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/memory"
)

// callers are a sender under the jobs, with the subscriber sub_a.
type callers struct {
	*bed
	keys     *sender.Keys
	reg      *sender.Registry[tx]
	pub      *sender.Publisher[tx]
	history  *history.History
	callback *jobs.Callbacks[tx]
}

func newCallers(t *testing.T, logger *slog.Logger) *callers {
	t.Helper()
	c := &callers{bed: newBed(t)}
	var err error
	c.keys, err = sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	c.reg, err = sender.NewRegistry(c.under, c.keys, nil)
	require.NoError(t, err)
	c.pub, err = sender.NewPublisher(c.under, nil)
	require.NoError(t, err)
	c.history, err = history.New(c.under, nil)
	require.NoError(t, err)
	c.callback, err = jobs.NewCallbacks(c.reg, c.pub, &jobs.CallbacksConfig{Logger: logger})
	require.NoError(t, err)
	_, _, err = c.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	return c
}

func (c *callers) events() []sender.StoredEvent {
	c.t.Helper()
	page, _, err := c.history.Events(c.t.Context(), history.EventQuery{})
	require.NoError(c.t, err)
	return page
}

func TestCompletionIsToldWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t, quiet)
		k := work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			switch string(r.Job().Input) {
			case `"fail"`:
				return nil, jobs.Permanent(errors.New("refused"))
			case `"wait"`:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return json.RawMessage(`7`), nil
		})
		j := c.jobs(config{Announcer: c.callback}, k)

		var posted noted[string]
		d, err := dispatch.New(c.under, c.keys, &dispatch.Config{Logger: quiet, UnguardedTransport: transportFunc(func(r *http.Request) (*http.Response, error) {
			posted.add(r.URL.String())
			return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
		})})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		dispatched := make(chan error)
		go func() { dispatched <- d.Run(ctx) }()

		submit := func(input, url string) jobs.Job {
			return c.submit(j, jobs.Submission{Owner: "sub_a", Input: json.RawMessage(input), CallbackURL: url})
		}
		queued := submit(`"queued"`, "https://example.com/queued")
		_, err = j.Cancel(t.Context(), jobs.Key{ID: queued.ID, Owner: "sub_a"})
		require.NoError(t, err)
		c.start(j)
		all := map[string]jobs.Status{queued.ID: jobs.Cancelled}
		all[submit(`"work"`, "https://Example.com/jobs?one").ID] = jobs.Succeeded
		all[submit(`"fail"`, "https://example.com/two").ID] = jobs.Failed
		waits := submit(`"wait"`, "https://example.org/three")
		all[waits.ID] = jobs.Cancelled
		silent := c.submit(j, jobs.Submission{Owner: "sub_a", Input: json.RawMessage(`"silent"`)})
		synctest.Wait()
		_, err = j.Cancel(t.Context(), jobs.Key{ID: waits.ID})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, jobs.Succeeded, c.get(j, silent.ID).Status)

		for id, want := range all {
			require.Equal(t, want, c.get(j, id).Status)
		}
		require.Len(t, c.events(), len(all), "one for each with a callback URL, none for the others")
		for _, e := range c.events() {
			require.Equal(t, "job.completed", e.Type)
			require.Equal(t, "job", e.Object.Type)
			require.EqualValues(t, 1, e.Version)
			require.Equal(t, "sub_a", e.Subscriber, "signed with the owner's secret")
			whole, err := c.history.Event(t.Context(), e.ID)
			require.NoError(t, err)
			require.Contains(t, string(whole.Body), `"data":{"status":"`+string(all[e.Object.ID])+`"}}`)
		}
		require.ElementsMatch(t, []string{
			"https://example.com/queued", "https://example.com/jobs?one", "https://example.com/two", "https://example.org/three",
		}, posted.list())
		cancel()
		require.NoError(t, <-dispatched)
	})
}

// A process that could not tell of the end of a job leaves it to others, and goes on with the
// other jobs, however many of these there are.
func TestJobsWithCallbacksWithoutAnAnnouncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t, quiet)
		k := work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			if string(r.Job().Input) == `"wait"` {
				<-ctx.Done()
			}
			return nil, ctx.Err()
		})
		k.Concurrency = 2
		tells, silent := c.jobs(config{Announcer: c.callback}, k), c.jobs(config{}, k)
		var called []jobs.Job
		for _, input := range []string{`"wait"`, `1`, `2`, `3`} {
			called = append(called, c.submit(tells, jobs.Submission{Owner: "sub_a", Input: json.RawMessage(input), CallbackURL: "https://example.com/"}))
		}
		c.start(silent)
		plain := c.submit(silent, jobs.Submission{})
		require.Equal(t, jobs.Succeeded, c.finished(silent, plain.ID).Status)
		for _, job := range called {
			_, err := silent.Cancel(t.Context(), jobs.Key{ID: job.ID})
			require.ErrorIs(t, err, jobs.ErrNoAnnouncer)
			require.ErrorContains(t, err, "set Config.Announcer")
			job.Input = c.get(silent, job.ID).Input
			require.Equal(t, job, c.get(silent, job.ID), "as it was submitted")
		}

		c.start(tells)
		for _, job := range called[1:] {
			require.Equal(t, jobs.Succeeded, c.finished(tells, job.ID).Status)
		}
		waits, err := silent.Cancel(t.Context(), jobs.Key{ID: called[0].ID})
		require.NoError(t, err, "its worker ends it, and tells of it")
		require.True(t, waits.CancelRequested)
		require.Equal(t, jobs.Cancelled, c.finished(tells, waits.ID).Status)
		require.Len(t, c.events(), len(called))
	})
}

func TestCallbackURLsAreRefused(t *testing.T) {
	c := newCallers(t, quiet)
	j := c.jobs(config{Announcer: c.callback}, nothing)
	for _, s := range []struct {
		owner, url string
		is         error
	}{{"sub_a", "http://example.com/", sender.ErrInvalid}, {"sub_a", "https://127.0.0.1/", sender.ErrInvalid}, {"sub_b", "https://example.com/", sender.ErrNotFound}} {
		_, err := j.Submit(t.Context(), jobs.Submission{Kind: "work", Owner: s.owner, CallbackURL: s.url})
		require.ErrorIs(t, err, s.is, s.url)
	}
	require.Empty(t, c.all(j))
	_, err := jobs.NewCallbacks[tx](nil, nil, nil)
	require.ErrorContains(t, err, "needs a registry")
	require.ErrorContains(t, err, "needs a publisher")
}

// The completion and its event commit together: while the event cannot be published the
// completion is not written, and the worker keeps the function's result. So it is if a check
// of the publisher panics: the process goes on.
func TestCompletionAndEventCommitTogether(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("the disk is full") },
		"panic": func() error { panic("of secrets") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedLog
				c := newCallers(t, quiet)
				a := &stubborn{Callbacks: c.callback, refusals: 3, fail: fail}
				calls := 0
				j := c.jobs(config{Announcer: a, Logger: slog.New(slog.NewTextHandler(&log, nil))}, work(func(context.Context, *run) (json.RawMessage, error) {
					calls++
					return json.RawMessage(`7`), nil
				}))
				job := c.submit(j, jobs.Submission{Owner: "sub_a", CallbackURL: "https://example.com/"})
				c.start(j)
				synctest.Wait()
				require.Equal(t, jobs.Running, c.get(j, job.ID).Status)
				require.Empty(t, c.events(), "what was published before the error is rolled back")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, jobs.Succeeded, c.get(j, job.ID).Status)
				require.Len(t, c.events(), 1)
				require.Equal(t, 1, calls)
				require.NotContains(t, log.String(), "of secrets")
				require.Equal(t, name == "panic", strings.Contains(log.String(), "panicked with a string"))
			})
		})
	}
}

// stubborn publishes and then fails, a given number of times.
type stubborn struct {
	*jobs.Callbacks[tx]
	refusals int
	fail     func() error
}

func (s *stubborn) CompletedTx(ctx context.Context, tx *memory.Tx, j jobs.Job) error {
	if err := s.Callbacks.CompletedTx(ctx, tx, j); err != nil {
		return err
	}
	if s.refusals--; s.refusals >= 0 {
		return s.fail()
	}
	return nil
}

func TestOwnerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		c := newCallers(t, slog.New(slog.NewTextHandler(&log, nil)))
		j := c.jobs(config{Announcer: c.callback}, nothing)
		job := c.submit(j, jobs.Submission{Owner: "sub_a", CallbackURL: "https://example.com/?token=hidden"})
		require.NoError(t, c.reg.DeleteSubscriber(t.Context(), "sub_a"))
		c.start(j)
		require.Equal(t, jobs.Succeeded, c.finished(j, job.ID).Status)
		require.Empty(t, c.events())
		require.Contains(t, log.String(), "a job's completion cannot be told")
		require.NotContains(t, log.String(), "hidden")
	})
}

// A job ends also if the application has published events about it, whose versions are then
// before that of its completion.
func TestCompletionAfterOtherEventsAboutTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t, quiet)
		j := c.jobs(config{Announcer: c.callback}, work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			_, err := c.pub.Publish(ctx, sender.Event{Type: "job.progressed", Object: sender.Object{Type: jobs.ObjectType, ID: r.Job().ID}})
			return nil, err
		}))
		job := c.submit(j, jobs.Submission{Owner: "sub_a", CallbackURL: "https://example.com/"})
		c.start(j)
		require.Equal(t, jobs.Succeeded, c.finished(j, job.ID).Status)
		require.Len(t, c.events(), 2)
		require.Equal(t, "job.completed 2", fmt.Sprint(c.events()[0].Type, " ", c.events()[0].Version))
	})
}

// A check that refuses the event of a completion does not keep a job from ending: it would
// refuse it for ever.
func TestCompletionThatACheckRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		c := newCallers(t, quiet)
		pub, err := sender.NewPublisher(c.under, &sender.PublisherConfig{Check: func(_ context.Context, p sender.Payload) error {
			return errors.New("there is no such type: " + p.Type)
		}})
		require.NoError(t, err)
		c.callback, err = jobs.NewCallbacks(c.reg, pub, &jobs.CallbacksConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		j := c.jobs(config{Announcer: c.callback}, nothing)
		job := c.submit(j, jobs.Submission{Owner: "sub_a", CallbackURL: "https://example.com/"})
		c.start(j)
		require.Equal(t, jobs.Succeeded, c.finished(j, job.ID).Status)
		require.Empty(t, c.events())
		require.Contains(t, log.String(), "there is no such type: job.completed")
	})
}

// transportFunc is an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
