package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/sqlite"
)

// Transactions begin in the order of their calls. If each tried again and again until it had
// SQLite's lock, one could wait for longer than its job's lease lasts: on a slow disk the lock
// is free for a moment only, between the commits of others. A call that gives up, panics or
// ends its goroutine lets the next one begin.
func TestInTxTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.New(open(t, path(t), fit), nil)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		release := make(chan struct{})
		go func() {
			defer func() { _ = recover() }()
			_ = s.InTx(t.Context(), func(*sql.Tx) error {
				<-release
				panic("by the function")
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var order []int
		for i := range 8 {
			ctx := ctx
			if i != 3 {
				ctx = t.Context()
			}
			go func() {
				err := s.InTx(ctx, func(*sql.Tx) error {
					order = append(order, i)
					return nil
				})
				if i == 3 && !errors.Is(err, context.Canceled) || i != 3 && err != nil {
					t.Error(i, err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(release)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 4, 5, 6, 7}, order)
	})
}

// A call that would wait for itself is refused at once, and the outer transaction is
// committed all the same.
func TestInTxInsideItself(t *testing.T) {
	s, err := sqlite.New(open(t, path(t), fit), nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	j, err := jobs.New(s, []jobs.Kind[*sql.Tx]{{Name: "work", Run: nothing}}, nil)
	require.NoError(t, err)
	var job jobs.Submitted
	require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
		_, err := j.Submit(t.Context(), jobs.Submission{Kind: "work"})
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.ErrorContains(t, err, "the method whose name ends in Tx")
		job, err = j.SubmitTx(t.Context(), tx, jobs.Submission{Kind: "work"})
		return err
	}))
	_, err = j.Get(t.Context(), jobs.Key{ID: job.ID})
	require.NoError(t, err)
}
