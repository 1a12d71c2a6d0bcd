package jobs_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// looking is a store that is looked at before a transaction begins.
type looking struct {
	jobs.Store[tx]
	looks, begun atomic.Int64
}

func (l *looking) InTx(ctx context.Context, fn func(tx) error) error {
	l.begun.Add(1)
	return l.Store.InTx(ctx, fn)
}

func (l *looking) AnyDue(ctx context.Context, queries []jobs.DueQuery) (some bool, err error) {
	l.looks.Add(1)
	err = l.Store.InTx(ctx, func(tx tx) error {
		for _, q := range queries {
			due, _, err := l.Store.DueTx(ctx, tx, q)
			if err != nil {
				return err
			}
			some = some || len(due) > 0
		}
		return nil
	})
	return some, err
}

// Where a transaction keeps other writers waiting, workers begin none while nothing is due.
func TestIdleWorkersOnlyLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		store := &looking{Store: b.store}
		second := nothing
		second.Name = "second"
		j, err := jobs.New[tx](store, []kind{nothing, second}, &config{Logger: quiet})
		require.NoError(t, err)
		b.start(j)
		synctest.Wait()
		began := store.begun.Load() // to prune
		looked := store.looks.Load()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, began, store.begun.Load())
		require.Equal(t, looked+10, store.looks.Load())
		for _, of := range []string{"work", "second"} {
			job := b.submit(b.jobs(config{}, nothing, second), jobs.Submission{Kind: of}) // which does not wake j
			require.Equal(t, jobs.Succeeded, b.finished(j, job.ID).Status)
		}
	})
}

// Nor do workers begin one for a job that they leave to others: it has a callback URL, of which
// they could not tell, or its owner has as many places as one may have.
func TestWorkersLookForWhatTheyMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCallers(t, quiet)
		hangs := work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		hangs.OwnerConcurrency = 1
		tells := c.jobs(config{Announcer: c.callback}, hangs)
		store := &looking{Store: c.store}
		j, err := jobs.New[tx](store, []kind{hangs}, &config{Logger: quiet, Lease: time.Hour, DrainTimeout: time.Nanosecond})
		require.NoError(t, err)
		for _, s := range []jobs.Submission{{Owner: "sub_b"}, {Owner: "sub_b"}, {Owner: "sub_a", CallbackURL: "https://example.com/"}} {
			c.submit(tells, s)
		}
		c.start(j)
		synctest.Wait()
		began, looked := store.begun.Load(), store.looks.Load()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, began, store.begun.Load())
		require.Equal(t, looked+10, store.looks.Load())
	})
}
