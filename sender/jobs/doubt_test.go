package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender/jobs"
)

// lostAnswer is a store that commits a claim and loses the answer, as often as left says.
type lostAnswer struct {
	jobs.Store[tx]
	outcomes bool // not claims: what their tries have brought
	left     atomic.Int64
	lossy    sync.Map // the transactions whose answers may be lost
}

func (l *lostAnswer) UpdateTx(ctx context.Context, tx tx, r jobs.Record) error {
	if (r.Status != jobs.Running) == l.outcomes {
		l.lossy.Store(tx, true)
	}
	return l.Store.UpdateTx(ctx, tx, r)
}

func (l *lostAnswer) InTx(ctx context.Context, fn func(tx) error) error {
	var of tx
	err := l.Store.InTx(ctx, func(tx tx) error {
		of = tx
		return fn(tx)
	})
	if _, lossy := l.lossy.LoadAndDelete(of); lossy && err == nil && l.left.Add(-1) >= 0 {
		return errAway
	}
	return err
}

// A job that a worker has claimed without knowing it does not wait for the end of the lease,
// and loses no try.
func TestClaimWhoseAnswerWasLost(t *testing.T) {
	for name, then := range map[string]func(b *bed, j *jobs.Jobs[tx], job jobs.Job, stop func() error, away func(bool)){
		"and nothing else": func(*bed, *jobs.Jobs[tx], jobs.Job, func() error, func(bool)) {},
		"and the database is away for a while": func(_ *bed, _ *jobs.Jobs[tx], _ jobs.Job, _ func() error, away func(bool)) {
			away(true)
			time.Sleep(7 * time.Second)
			away(false)
		},
		"and the worker stops": func(b *bed, j *jobs.Jobs[tx], job jobs.Job, stop func() error, _ func(bool)) {
			require.NoError(b.t, stop())
			require.Equal(b.t, jobs.Queued, b.get(j, job.ID).Status)
			k := nothing
			k.MaxTries = 1
			b.start(b.jobs(config{}, k))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				paused, away := newPauser(b.store)
				store := &lostAnswer{Store: paused}
				store.left.Store(1)
				k := nothing
				k.MaxTries = 1
				j, err := jobs.New[tx](store, []kind{k}, &config{Lease: time.Minute, Logger: quiet})
				require.NoError(t, err)
				job := b.submit(b.jobs(config{}, k), jobs.Submission{}) // which does not wake j
				stop := b.start(j)
				synctest.Wait()
				require.Equal(t, jobs.Running, b.get(j, job.ID).Status, "nobody runs it")
				then(b, j, job, stop, away)
				got := b.finished(b.jobs(config{}, k), job.ID)
				require.Equal(t, jobs.Succeeded, got.Status, got.Error)
				require.Equal(t, 1, got.Tries)
				require.Less(t, got.FinishedAt.Sub(got.CreatedAt), time.Minute, "of the bubble's time: the lease lasts for longer")
			})
		})
	}
	t.Run("and somebody cancels it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			store := &lostAnswer{Store: b.store}
			store.left.Store(1)
			j, err := jobs.New[tx](store, []kind{nothing}, &config{Lease: time.Minute, Logger: quiet})
			require.NoError(t, err)
			elsewhere := b.jobs(config{}, nothing)
			job := b.submit(elsewhere, jobs.Submission{})
			b.start(j)
			synctest.Wait()
			asked, err := elsewhere.Cancel(t.Context(), jobs.Key{ID: job.ID})
			require.NoError(t, err)
			require.Equal(t, jobs.Running, asked.Status, "nobody runs it")
			got := b.finished(j, job.ID)
			require.Equal(t, jobs.Cancelled, got.Status)
			require.Zero(t, got.Tries)
			require.Less(t, got.FinishedAt.Sub(got.CreatedAt), time.Minute)
		})
	})
	t.Run("and another worker has claimed the job by then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			paused, away := newPauser(b.store)
			store := &lostAnswer{Store: paused}
			store.left.Store(1)
			j, err := jobs.New[tx](store, []kind{nothing}, &config{Lease: time.Minute, Logger: quiet})
			require.NoError(t, err)
			job := b.submit(b.jobs(config{}, nothing), jobs.Submission{})
			b.start(j)
			synctest.Wait()
			require.Equal(t, jobs.Running, b.get(j, job.ID).Status, "nobody runs it")
			away(true)
			require.NoError(t, b.store.InTx(t.Context(), func(tx tx) error {
				r, _, err := b.store.LockTx(t.Context(), tx, jobs.Key{ID: job.ID})
				require.NoError(t, err)
				r.Token++
				return b.store.UpdateTx(t.Context(), tx, r)
			}))
			away(false)
			time.Sleep(30 * time.Second)
			require.Equal(t, jobs.Running, b.get(b.jobs(config{}, nothing), job.ID).Status)
		})
	})
	t.Run("of a job that another process was lost with", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			paused, paralysed := newPauser(b.store)
			k := nothing
			k.MaxTries = 2
			dying := k
			dying.Run = func(ctx context.Context, _ *run) (json.RawMessage, error) {
				paralysed(true)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			dead, err := jobs.New[tx](paused, []kind{dying}, &config{Logger: quiet})
			require.NoError(t, err)
			job := b.submit(dead, jobs.Submission{})
			b.start(dead)
			synctest.Wait()
			store := &lostAnswer{Store: b.store}
			store.left.Store(1)
			j, err := jobs.New[tx](store, []kind{k}, &config{Logger: quiet})
			require.NoError(t, err)
			b.start(j)
			got := b.finished(j, job.ID)
			require.Negative(t, store.left.Load(), "an answer was lost, and a later one was not")
			require.Equal(t, jobs.Succeeded, got.Status, got.Error)
			require.Equal(t, 2, got.Tries)
		})
	})
}

// An outcome that is stored counts as stored, although the answer to its commit was lost.
func TestOutcomeWhoseAnswerWasLost(t *testing.T) {
	late, err := backoff.Fixed(time.Hour)
	require.NoError(t, err)
	cancelled := func(b *bed, elsewhere *jobs.Jobs[tx], id string) {
		_, err := elsewhere.Cancel(b.t.Context(), jobs.Key{ID: id})
		require.NoError(b.t, err)
	}
	claimed := func(b *bed, _ *jobs.Jobs[tx], id string) {
		require.NoError(b.t, b.store.InTx(b.t.Context(), func(tx tx) error {
			r, _, err := b.store.LockTx(b.t.Context(), tx, jobs.Key{ID: id})
			require.NoError(b.t, err)
			r.Status = jobs.Running
			r.Token++
			return b.store.UpdateTx(b.t.Context(), tx, r)
		}))
	}
	for name, c := range map[string]struct {
		err      error
		then     func(b *bed, elsewhere *jobs.Jobs[tx], id string) // before the worker looks again
		stored   jobs.Status
		finished int // calls of the hook
		unknown  bool
	}{
		"a result":                       {nil, nil, jobs.Succeeded, 1, false},
		"a failure":                      {jobs.Permanent(errors.New("refused")), nil, jobs.Failed, 1, false},
		"an error":                       {errors.New("no luck"), nil, jobs.Queued, 0, false},
		"an error, and somebody cancels": {errors.New("no luck"), cancelled, jobs.Queued, 0, false},
		"an error, and another worker claims then": {errors.New("no luck"), claimed, jobs.Queued, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				store := &lostAnswer{Store: b.store, outcomes: true}
				store.left.Store(1)
				var log lockedLog
				var tries noted[jobs.Try]
				var finished noted[jobs.Job]
				k := work(func(context.Context, *run) (json.RawMessage, error) { return json.RawMessage(`7`), c.err })
				k.Schedule = late
				j, err := jobs.New[tx](store, []kind{k}, &config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Hooks: jobs.Hooks{
					Ended:    func(_ context.Context, tr jobs.Try) { tries.add(tr) },
					Finished: func(_ context.Context, j jobs.Job) { finished.add(j) },
				}})
				require.NoError(t, err)
				b.start(j)
				job := b.submit(j, jobs.Submission{})
				synctest.Wait()
				stored := b.get(j, job.ID)
				require.Equal(t, c.stored, stored.Status)
				require.Empty(t, tries.list(), "the worker does not know it yet")
				if c.then != nil {
					c.then(b, b.jobs(config{}, k), job.ID)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				require.Len(t, tries.list(), 1)
				require.Len(t, finished.list(), c.finished)
				require.Equal(t, c.unknown, tries.list()[0].Lost)
				require.NotContains(t, log.String(), "was not stored")
				if c.unknown {
					require.Contains(t, log.String(), "it is not known whether the outcome of a job's try was stored")
					return
				}
				require.Equal(t, stored, tries.list()[0].Job)
			})
		})
	}
}
