package receiver_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
)

// No function gets its result before the commit. A function that leaves the queue is not
// run.
func TestGroupWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		hold := make(chan struct{})
		errs := make(chan error, 3)
		go func() {
			errs <- g.InTx(t.Context(), func(*script) error {
				<-hold
				return nil
			})
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			errs <- g.InTx(ctx, says("left", nil))
		}()
		go func() { errs <- g.InTx(t.Context(), says("stays", nil)) }()
		require.ErrorIs(t, <-errs, context.DeadlineExceeded)
		close(hold)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, next, stays, release, commit", s.take())
	})
	// A request whose time ends between its own work and the commit does not know the
	// outcome.
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		first, last := make(chan struct{}), make(chan struct{})
		errs := make(chan error, 3)
		go func() { errs <- g.InTx(t.Context(), func(*script) error { <-first; return nil }) }()
		synctest.Wait()
		left := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left <- g.InTx(ctx, says("b", nil))
		}()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), func(*script) error { <-last; return nil }) }()
		synctest.Wait()
		close(first)
		err := <-left
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the common commit has not ended")
		close(last)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
	})
}

// The end of the first request's time ends neither the work of the others nor the commit. A
// request whose time is over already is not run.
func TestGroupOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, errs := make(chan struct{}), make(chan error, 2)
		go func() { errs <- g.InTx(ctx, func(*script) error { <-start; return nil }) }()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), func(*script) error { time.Sleep(2 * time.Second); return nil }) }()
		synctest.Wait()
		close(start)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, next, release, commit", s.take())
		require.ErrorIs(t, g.InTx(ctx, says("late", nil)), context.DeadlineExceeded)
		require.NotContains(t, s.take(), "late")
	})
	// Nor is it run again if another one has broken the transaction.
	synctest.Test(t, func(t *testing.T) {
		s := &script{refuse: map[string]error{"ROLLBACK TO SAVEPOINT surehook": errors.New("connection lost")}}
		g := s.group(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, first, second := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() { first <- g.InTx(ctx, func(*script) error { <-start; return nil }) }()
		synctest.Wait()
		go func() {
			second <- g.InTx(t.Context(), func(*script) error { time.Sleep(2 * time.Second); return errOwn })
		}()
		synctest.Wait()
		close(start)
		require.ErrorContains(t, <-first, "the shared transaction was lost: connection lost")
		require.ErrorIs(t, <-second, errOwn)
		require.Equal(t, "begin, savepoint, next, undo, rollback", s.take())
	})
}

// The error of a shared transaction whose time is over blames no function.
// Those whose own time is not over are run again, also the one that fails because of it.
func TestGroupTimeout(t *testing.T) {
	run := func(t *testing.T, commit time.Duration, fns ...func(*script) error) []error {
		ended := func(ctx context.Context) error {
			if ctx.Err() != nil {
				return sql.ErrTxDone // as database/sql says it
			}
			return nil
		}
		s := new(script)
		g, err := receiver.NewGroup(func(ctx context.Context, fn func(*script) error) error {
			err := s.inTx(context.WithoutCancel(ctx), fn)
			time.Sleep(commit)
			return cmp.Or(err, ended(ctx))
		}, func(ctx context.Context, tx *script, statements string) error {
			return cmp.Or(ended(ctx), tx.say(statements))
		}, &receiver.GroupConfig{Timeout: 8 * time.Second})
		require.NoError(t, err)
		return crowd(t, g, fns...)
	}
	slowAtFirst := func(took time.Duration, err error) func(*script) error {
		return func(*script) error {
			time.Sleep(took)
			defer func() { took, err = 0, nil }()
			return err
		}
	}
	synctest.Test(t, func(t *testing.T) {
		errs := run(t, 0, slowAtFirst(7*time.Second, nil), slowAtFirst(2*time.Second, sql.ErrTxDone), says("c", nil))
		require.Equal(t, []error{nil, nil, nil}, errs)
	})
	synctest.Test(t, func(t *testing.T) {
		errs := run(t, 9*time.Second, says("a", nil))
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.ErrorContains(t, errs[0], "GroupConfig.Timeout, which is 8s, was over")
		require.NotErrorIs(t, errs[0], sql.ErrTxDone)
	})
	synctest.Test(t, func(t *testing.T) { // each time
		errs := run(t, 0, func(*script) error {
			time.Sleep(9 * time.Second)
			return nil
		})
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.ErrorContains(t, errs[0], "GroupConfig.Timeout, which is 8s, was over")
		require.NotErrorIs(t, errs[0], sql.ErrTxDone)
	})
	// A request that comes when the time is over gets a transaction of its own.
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		errs := crowd(t, s.group(t, &receiver.GroupConfig{Timeout: 8 * time.Second}), slowAtFirst(9*time.Second, nil), says("b", nil))
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.NoError(t, errs[1])
		require.Equal(t, "begin, savepoint, release, begin, savepoint, b, release, commit", s.take())
	})
	// A transaction that could not be begun in that time has the database's own words.
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("too many clients already")
		g, err := receiver.NewGroup(func(ctx context.Context, _ func(*script) error) error {
			<-ctx.Done()
			return full
		}, func(context.Context, *script, string) error { return nil }, nil)
		require.NoError(t, err)
		require.Equal(t, full, g.InTx(t.Context(), says("a", nil)))
	})
}

// Where the InTx runs all again, a request that has left meanwhile is not waited for, and has no
// part in what is committed.
func TestGroupMemberThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{reruns: 1}
		g := s.group(t, nil)
		start, errs, left := make(chan struct{}), make(chan error, 2), make(chan error, 1)
		go func() {
			errs <- g.InTx(t.Context(), func(tx *script) error {
				<-start
				return tx.say("a")
			})
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left <- g.InTx(ctx, says("left", nil))
		}()
		synctest.Wait()
		go func() {
			errs <- g.InTx(t.Context(), func(tx *script) error {
				time.Sleep(2 * time.Second)
				return tx.say("c")
			})
		}()
		synctest.Wait()
		close(start)
		require.ErrorContains(t, <-left, "the common commit has not ended")
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, a, next, left, next, c, release, again, savepoint, a, next, undo, c, release, commit", s.take())
	})
}

// A request whose time ends just before its turn is not run, and affects no other.
func TestGroupMemberThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g, err := receiver.NewGroup(s.inTx, func(_ context.Context, tx *script, statements string) error {
			time.Sleep(2 * time.Second)
			return tx.say(statements)
		}, &receiver.GroupConfig{Timeout: time.Minute})
		require.NoError(t, err)
		errs, late := make(chan error, 2), make(chan error, 1)
		go func() { errs <- g.InTx(t.Context(), says("a", nil)) }()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // after the first savepoint, and before the next
			defer cancel()
			late <- g.InTx(ctx, says("late", nil))
		}()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), says("b", nil)) }()
		require.Equal(t, context.DeadlineExceeded, <-late)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, a, next, undo, b, release, commit", s.take())
	})
}
