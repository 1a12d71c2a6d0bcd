package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name   string
		fn     func(ctx context.Context, r *run) (json.RawMessage, error)
		says   error
		status jobs.Status
		took   time.Duration
	}{
		{"one that ends in time", func(context.Context, *run) (json.RawMessage, error) {
			time.Sleep(10 * time.Second)
			return nil, nil
		}, nil, jobs.Succeeded, 10 * time.Second},
		{"one that heeds its context", func(ctx context.Context, _ *run) (json.RawMessage, error) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), jobs.ErrDraining) {
				return nil, jobs.Permanent(context.Cause(ctx))
			}
			return nil, ctx.Err()
		}, nil, jobs.Queued, 20 * time.Second},
		{"one that does not", func(context.Context, *run) (json.RawMessage, error) {
			time.Sleep(time.Hour)
			return nil, nil
		}, jobs.ErrDrainTimeout, jobs.Running, 26 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				var log lockedLog
				j := b.jobs(config{DrainTimeout: 20 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}, work(c.fn))
				stop := b.start(j)
				job := b.submit(j, jobs.Submission{})
				synctest.Wait()
				require.ErrorIs(t, j.Run(t.Context()), jobs.ErrRunning)
				begun := time.Now()
				later := b.submit
				ended := make(chan error, 1)
				go func() { ended <- stop() }()
				synctest.Wait()
				waits := later(j, jobs.Submission{})
				if c.says == nil {
					require.NoError(t, <-ended)
				} else {
					require.ErrorIs(t, <-ended, c.says)
				}
				require.Equal(t, c.took, time.Since(begun))
				got := b.get(j, job.ID)
				require.Equal(t, c.status, got.Status)
				if c.status == jobs.Queued {
					require.Zero(t, got.Tries, "the try is not counted")
					require.Empty(t, got.Error)
					require.Contains(t, log.String(), `level=INFO msg="a job's try was stopped"`)
				}
				require.NotContains(t, log.String(), "level=WARN", "nothing has failed")
				require.Equal(t, jobs.Queued, b.get(j, waits.ID).Status, "nothing is claimed any more")
				time.Sleep(2 * time.Hour) // for the function that ignores its context
			})
		})
	}
}

// lateCommit is a store whose claims wait before they commit.
type lateCommit struct {
	jobs.Store[tx]
	commit chan struct{}
}

func (l *lateCommit) DueTx(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
	due, now, err := l.Store.DueTx(ctx, tx, q)
	if len(due) > 0 {
		<-l.commit
	}
	return due, now, err
}

// A job whose claim commits after the workers were stopped is not begun, and waits for nobody.
func TestDrainDuringAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		store := &lateCommit{Store: b.store, commit: make(chan struct{})}
		j, err := jobs.New[tx](store, []kind{work(func(context.Context, *run) (json.RawMessage, error) {
			t.Error("a job was begun")
			return nil, nil
		})}, &config{Logger: quiet})
		require.NoError(t, err)
		elsewhere := b.jobs(config{}, nothing)
		job := b.submit(elsewhere, jobs.Submission{})
		stop := b.start(j)
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		synctest.Wait()
		close(store.commit)
		require.NoError(t, <-ended)
		got := b.get(elsewhere, job.ID)
		require.Equal(t, jobs.Queued, got.Status)
		require.Zero(t, got.Tries)
		require.Zero(t, got.StartedAt)
		begun := time.Now()
		b.start(elsewhere)
		require.Equal(t, jobs.Succeeded, b.finished(elsewhere, job.ID).Status)
		require.Less(t, time.Since(begun), 5*time.Second, "of the bubble's time: it does not wait for the end of a lease")
	})
}

func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		paused, paralysed := newPauser(b.store)
		var calls int
		j, err := jobs.New[tx](paused, []kind{work(func(context.Context, *run) (json.RawMessage, error) {
			calls++
			paralysed(true)
			go func() {
				time.Sleep(20 * time.Second) // less than a lease
				paralysed(false)
			}()
			return json.RawMessage(`1`), nil
		})}, &config{Logger: quiet})
		require.NoError(t, err)
		job := b.submit(j, jobs.Submission{})
		paralysed(true)
		stop := b.start(j)
		time.Sleep(time.Minute)
		require.NoError(t, stop(), "it ends while it waits")
		b.start(j)
		time.Sleep(time.Minute)
		paralysed(false)
		time.Sleep(5 * time.Minute)
		got := b.finished(j, job.ID)
		require.Equal(t, jobs.Succeeded, got.Status, "workers get over it, and so does what a try has brought")
		require.Equal(t, 1, calls)
	})
}

// silent is a store whose connections die without a word while they store what tries have
// brought, as often as left says, and while they store the next step, if gone says so.
type silent struct {
	jobs.Store[tx]
	left atomic.Int64
	gone atomic.Bool
}

func (s *silent) UpdateTx(ctx context.Context, tx tx, r jobs.Record) error {
	step := r.Status == jobs.Running && r.State != nil
	if step && s.gone.Swap(false) || r.Status != jobs.Running && s.left.Add(-1) >= 0 {
		return errAway
	}
	return s.Store.UpdateTx(ctx, tx, r)
}

func (s *silent) InTx(ctx context.Context, fn func(tx) error) error {
	err := s.Store.InTx(ctx, fn)
	if errors.Is(err, errAway) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// A connection that is silently dead keeps neither a step nor what a try has brought, nor is it
// taken for a function that is still running.
func TestDeadConnection(t *testing.T) {
	t.Run("is stored on another one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			store := &silent{Store: b.store}
			store.left.Store(1)
			var calls atomic.Int64
			j, err := jobs.New[tx](store, []kind{work(func(context.Context, *run) (json.RawMessage, error) {
				calls.Add(1)
				return nil, nil
			})}, &config{Logger: quiet})
			require.NoError(t, err)
			b.start(j)
			job := b.submit(j, jobs.Submission{})
			time.Sleep(time.Minute) // two leases
			synctest.Wait()
			require.Equal(t, jobs.Succeeded, b.get(j, job.ID).Status)
			require.EqualValues(t, 1, calls.Load())
		})
	})
	t.Run("ends a step", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			store := &silent{Store: b.store}
			var causes noted[error]
			j, err := jobs.New[tx](store, []kind{work(func(ctx context.Context, r *run) (json.RawMessage, error) {
				store.gone.Store(len(causes.list()) == 0)
				err := r.Save(ctx, []byte("a step"))
				causes.add(context.Cause(ctx))
				return nil, err
			})}, &config{Logger: quiet})
			require.NoError(t, err)
			b.start(j)
			job := b.submit(j, jobs.Submission{})
			time.Sleep(time.Minute) // two leases
			synctest.Wait()
			require.Equal(t, jobs.Succeeded, b.get(j, job.ID).Status)
			require.Len(t, causes.list(), 2)
			require.ErrorIs(t, causes.list()[0], jobs.ErrLost)
			require.NoError(t, causes.list()[1])
		})
	})
	t.Run("is given up at the end of a drain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			store := &silent{Store: b.store}
			store.left.Store(1000)
			var log lockedLog
			j, err := jobs.New[tx](store, []kind{work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})}, &config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			stop := b.start(j)
			job := b.submit(j, jobs.Submission{})
			synctest.Wait()
			require.NoError(t, stop(), "no function is still running")
			require.Contains(t, log.String(), "it is not known whether the outcome of a job's try was stored")
			next := b.jobs(config{}, nothing)
			b.start(next)
			require.Equal(t, jobs.Succeeded, b.finished(next, job.ID).Status)
		})
	})
}
