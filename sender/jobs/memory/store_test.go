package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs/jobstest"
	jobs "github.com/surehook/surehook/sender/jobs/memory"
	"github.com/surehook/surehook/sender/memory"
)

func TestStore(t *testing.T) {
	jobstest.Run(t, func(t *testing.T) jobstest.Harness[*memory.Tx] {
		var passed atomic.Int64
		start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		under, err := memory.New(nil)
		require.NoError(t, err)
		store, err := jobs.New(under, &jobs.Config{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
		require.NoError(t, err)
		return jobstest.Harness[*memory.Tx]{
			Store:   store,
			Advance: func(d time.Duration) { passed.Add(int64(d)) },
			Begin: func(t *testing.T) (*memory.Tx, func() error, func() error) {
				tx, err := under.Begin(t.Context())
				require.NoError(t, err)
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}

func TestNewRefuses(t *testing.T) {
	_, err := jobs.New(nil, nil)
	require.ErrorContains(t, err, "needs the sender's store")
}
