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
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
)

// A machine that was suspended for hours wakes with a clock that is ahead by them. The time that
// its programs measure stood still. Jobs that are being run there go on, also if there is one
// that waits.
func TestMachineThatWasSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var ahead atomic.Int64
		var err error
		b.store, err = jobsmemory.New(b.under, &jobsmemory.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		require.NoError(t, err)
		var calls atomic.Int64
		j := b.jobs(config{}, work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
			calls.Add(1)
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(40 * time.Second):
				return nil, nil
			}
		}))
		b.start(j)
		first := b.submit(j, jobs.Submission{})
		time.Sleep(5 * time.Second) // the lease is prolonged each ten
		ahead.Store(int64(6 * time.Hour))
		second := b.submit(j, jobs.Submission{})
		for _, id := range []string{first.ID, second.ID} {
			job := b.finished(j, id)
			require.Equal(t, jobs.Succeeded, job.Status)
			require.Equal(t, 1, job.Tries)
		}
		require.EqualValues(t, 2, calls.Load())
	})
}
