package jobs_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// insertsLate is a store in which others insert a job right after a claim has found no more.
type insertsLate struct {
	jobs.Store[tx]
	inserts *jobs.Record
}

func (l *insertsLate) DueTx(ctx context.Context, tx tx, q jobs.DueQuery) ([]jobs.Record, time.Time, error) {
	due, now, err := l.Store.DueTx(ctx, tx, q)
	if err == nil && len(due) == 0 && l.inserts != nil {
		_, _, err = l.InsertTx(ctx, tx, *l.inserts)
		l.inserts = nil
	}
	return due, now, err
}

// An owner has its turn although its job came only while a round seemed to end, and the round
// goes on: an owner who had a turn has no second one before the others.
func TestLateJobEndsNoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var begun noted[string]
		end := make(chan struct{})
		k := work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			owner := r.Job().Owner
			begun.add(owner)
			var ends chan struct{} // of the others never
			if owner == "a" {
				ends = end
			}
			select {
			case <-ends:
			case <-ctx.Done():
			}
			return nil, context.Cause(ctx)
		})
		k.Concurrency, k.OwnerConcurrency = 3, 1
		store := &insertsLate{Store: b.store, inserts: &jobs.Record{Job: jobs.Job{ID: "late", Kind: "work", Owner: "c", Input: json.RawMessage("{}")}}}
		j, err := jobs.New[tx](store, []kind{k}, &config{Logger: quiet, Lease: time.Hour, DrainTimeout: time.Nanosecond})
		require.NoError(t, err)
		for _, owner := range []string{"a", "a", "b"} {
			b.submit(j, jobs.Submission{Owner: owner})
		}
		b.start(j)
		synctest.Wait()
		require.ElementsMatch(t, []string{"a", "b", "c"}, begun.list())
		b.submit(j, jobs.Submission{Owner: "d"})
		end <- struct{}{}
		synctest.Wait()
		require.Len(t, begun.list(), 4)
		require.Equal(t, "d", begun.list()[3])
	})
}
