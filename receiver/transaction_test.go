package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
)

// failsAtCommit rolls back the first n transactions that would have committed.
func failsAtCommit[Tx any](inTx receiver.InTx[Tx], n int, err error) receiver.InTx[Tx] {
	return func(ctx context.Context, fn func(Tx) error) error {
		if n == 0 {
			return inTx(ctx, fn)
		}
		n--
		return inTx(ctx, func(tx Tx) error {
			if own := fn(tx); own != nil {
				return own
			}
			return err
		})
	}
}

func TestTransactionThatLostIsRunAgain(t *testing.T) {
	waited := map[time.Duration]bool{} // before a fourth run
	for _, c := range []struct {
		failures, runs, status int
	}{{0, 1, 200}, {1, 2, 200}, {3, 4, 200}, {4, 4, 503}, {9, 4, 503}} {
		for _, where := range []string{"apply", "commit"} {
			synctest.Test(t, func(t *testing.T) {
				b := onMemory()
				inTx, runs := b.inTx, 0
				if where == "commit" {
					inTx = failsAtCommit(b.inTx, c.failures, dedup.ErrRetryTx)
				}
				start := time.Now()
				ev := newEvent(1)
				h := newReceiver(t, inTx, b.store, nil).Handler(receiver.State(func(ctx context.Context, tx *memory.Tx, ev receiver.Event) error {
					runs++
					if err := b.effect(ctx, tx, ev); err != nil {
						return err
					}
					if where == "apply" && runs <= c.failures {
						return errors.Join(errors.New("storing"), pgError("40001"))
					}
					return nil
				}))
				require.Equal(t, c.status, newSender(t).Request(ev).Serve(h).Status)
				require.Equal(t, c.runs, runs)
				took, shortest := time.Since(start), (1<<(c.runs-1)-1)*5*time.Millisecond/2
				require.GreaterOrEqual(t, took, shortest, "halves of 5, 10 and 20 ms")
				require.LessOrEqual(t, took, 3*shortest)
				if c.runs == 4 {
					waited[took] = true
				}
				if c.status == 200 {
					require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
				} else {
					require.Equal(t, state{}, b.state(t, ev))
				}
			})
		}
	}
	require.Greater(t, len(waited), 1, "two that met must not meet again")
}

// A transaction that lost is not begun again if the time is over before.
func TestTransactionThatLostTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, runs := onMemory(), 0
		inTx := func(ctx context.Context, fn func(*memory.Tx) error) error {
			runs++
			return b.inTx(ctx, fn)
		}
		_, err := newReceiver(t, inTx, b.store, &receiver.Config{Timeout: time.Second}).Receive(t.Context(), newSender(t).Request(newEvent(1)).Message(),
			receiver.State(func(context.Context, *memory.Tx, receiver.Event) error {
				time.Sleep(time.Second - time.Millisecond)
				return pgError("40001")
			}))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, receiver.ReasonTimeout, failure.Reason)
		require.Equal(t, 1, runs)
	})
}

// Where more events come than the database takes, it goes on taking as many as it can. Each
// event that is begun has the time for it, though those before it have waited for as long.
func TestMoreEventsThanTheDatabaseTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onMemory()
		connection := make(chan struct{}, 1) // its waiters are served in their order
		closed := false                      // by the driver, because a statement's context has ended
		inTx := func(ctx context.Context, fn func(*memory.Tx) error) error {
			select {
			case connection <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() {
				if closed {
					time.Sleep(2 * time.Second)
					closed = false
				}
				<-connection
			}()
			return b.inTx(ctx, fn)
		}
		h := newReceiver(t, inTx, b.store, nil).Handler(receiver.Fact(func(ctx context.Context, tx *memory.Tx, ev receiver.Event) error {
			select {
			case <-time.After(time.Second):
				return b.effect(ctx, tx, ev)
			case <-ctx.Done():
				closed = true
				return ctx.Err()
			}
		}))
		sender := newSender(t)
		var taken atomic.Int64
		var posts sync.WaitGroup
		for n := range 4 * 60 { // 4 a second for a minute
			posts.Go(func() {
				if sender.Request(newEvent(int64(n+1))).Serve(h).Status == 200 {
					taken.Add(1)
				}
			})
			time.Sleep(time.Second / 4)
		}
		posts.Wait()
		require.InDelta(t, 60, taken.Load(), 5)
	})
}

// Where no transaction could be begun in time, the log has the database's own words, too, and a
// panic stays one. An InTx that says nothing is believed nothing.
func TestNotBegun(t *testing.T) {
	const says = "no transaction could be begun"
	type step = func(*memory.Tx) error
	late := func(inTx func(fn step) error) receiver.InTx[*memory.Tx] {
		return func(ctx context.Context, fn step) error {
			<-ctx.Done()
			return inTx(fn)
		}
	}
	for _, c := range []struct {
		inTx   receiver.InTx[*memory.Tx]
		status int
		words  []string
	}{
		{late(func(step) error { return errors.New("too many clients already") }), 503, []string{"reason=database", says, "too many clients already"}},
		{late(func(fn step) error { return fn(nil) }), 503, []string{"reason=database", says}},
		{late(func(step) error { return nil }), 503, []string{"reason=database", says}},
		{late(func(step) error { panic("a bug") }), 500, []string{"reason=panic"}},
		{func(context.Context, step) error { return nil }, 503, []string{"reason=database", "returned nil without having run its function"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, log := onMemory(), new(buffer)
			h := newReceiver(t, c.inTx, b.store, &receiver.Config{Logger: log.logger()}).Handler(receiver.Fact(b.effect))
			require.Equal(t, c.status, newSender(t).Request(newEvent(1)).Serve(h).Status)
			for _, words := range c.words {
				require.Equal(t, 1, strings.Count(log.String(), words), words)
			}
		})
	}
}

// A function that ends its goroutine, as a test's FailNow does, is rolled back and reported:
// no answer, no error and no panic would tell of it.
func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	b, log := onMemory(), new(buffer)
	var failed *receiver.Error
	rcv := b.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{Failed: func(_ context.Context, _ receiver.Event, err *receiver.Error) { failed = err }}})
	ev, ended := newEvent(1), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = rcv.Apply(t.Context(), receiver.Trusted[*memory.Tx]{Body: bodyOf(t, ev)}, receiver.Fact(func(ctx context.Context, tx *memory.Tx, ev receiver.Event) error {
			if err := b.effect(ctx, tx, ev); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		}))
	}()
	<-ended
	require.Equal(t, state{}, b.state(t, ev))
	require.Equal(t, receiver.Stats{Failed: 1}, rcv.Stats())
	require.Equal(t, receiver.ReasonPanic, failed.Reason)
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "a function has ended its goroutine")
	res, err := rcv.Apply(t.Context(), receiver.Trusted[*memory.Tx]{Body: bodyOf(t, ev)}, receiver.Fact(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
}

type pgError string

func (e pgError) Error() string    { return "could not serialize access" }
func (e pgError) SQLState() string { return string(e) }

// If a commit got through although it was reported as lost, the next run learns this by the
// marker.
func TestCommitThatGotThrough(t *testing.T) {
	b, _ := onSQLite(t)
	lost := true
	inTx := func(ctx context.Context, fn func(*sql.Tx) error) error {
		err := b.inTx(ctx, fn)
		if lost && err == nil {
			lost = false
			return pgError("40001")
		}
		return err
	}
	ev := newEvent(1)
	h := newReceiver(t, inTx, b.store, nil).Handler(receiver.State(b.effect))
	require.Equal(t, receiver.Duplicate, newSender(t).Request(ev).Serve(h).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
}

// If the time ends during a commit, the commit may have got through, so the error must not
// say that nothing was changed. Nor does it blame the function, though database/sql has the
// same error for both.
func TestCommitThatEndsTooLate(t *testing.T) {
	for _, driver := range []error{context.DeadlineExceeded, sql.ErrTxDone} {
		synctest.Test(t, func(t *testing.T) {
			b := onMemory()
			inTx := func(ctx context.Context, fn func(*memory.Tx) error) error {
				if err := b.inTx(ctx, fn); err != nil {
					return err
				}
				<-ctx.Done()
				return driver
			}
			ev := newEvent(1)
			_, err := newReceiver(t, inTx, b.store, nil).Receive(t.Context(), newSender(t).Request(ev).Message(), receiver.State(b.effect))
			var failure *receiver.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, receiver.ReasonCommit, failure.Reason)
			require.NotContains(t, err.Error(), "must neither commit it nor roll it back")
			require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
		})
	}
}

// lateStore answers when the time is over, in a driver's own words.
type lateStore struct{ dedup.Store[*memory.Tx] }

func (lateStore) Mark(ctx context.Context, _ *memory.Tx, _, _ string, _ time.Time) (bool, error) {
	<-ctx.Done()
	return false, errors.New("canceling statement due to user request")
}

// A statement that was broken off because the time was over failed for that reason.
func TestStatementThatEndsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onMemory()
		_, err := newReceiver(t, b.inTx, lateStore{b.store}, nil).Receive(t.Context(), newSender(t).Request(newEvent(1)).Message(), receiver.State(b.effect))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, receiver.ReasonTimeout, failure.Reason)
		require.ErrorContains(t, err, "canceling statement due to user request")
	})
}

// An InTx may run its function again by itself.
func TestInTxThatRunsAgain(t *testing.T) {
	b, _ := onSQLite(t)
	inTx := func(ctx context.Context, fn func(*sql.Tx) error) error {
		_ = b.inTx(ctx, func(tx *sql.Tx) error { return errors.Join(fn(tx), errLook) })
		return b.inTx(ctx, fn)
	}
	runs := 0
	h := newReceiver(t, inTx, b.store, nil).Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if runs++; runs == 1 {
			panic("only once")
		}
		return b.effect(ctx, tx, ev)
	}))
	require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(1)).Serve(h).Result)
}

func TestSQLRollsBack(t *testing.T) {
	b, db := onSQLite(t)
	insert := func(tx *sql.Tx) {
		_, err := tx.Exec("INSERT INTO effects (id) VALUES ('x')")
		require.NoError(t, err)
	}
	inTx := receiver.SQL(db, nil)
	require.ErrorIs(t, inTx(t.Context(), func(tx *sql.Tx) error { insert(tx); return errLook }), errLook)
	require.Panics(t, func() { _ = inTx(t.Context(), func(tx *sql.Tx) error { insert(tx); panic("no") }) })
	require.Zero(t, b.rows(t))
	require.Zero(t, db.Stats().InUse)
	require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error { insert(tx); return nil }))
	require.Equal(t, 1, b.rows(t))
	require.Nil(t, receiver.SQL(nil, nil))
}

type queries struct{ tx *sql.Tx }

// With both adapters the application's function gets its own kind of transaction.
func TestAdapt(t *testing.T) {
	b, _ := onSQLite(t)
	inTx := receiver.Adapt(b.inTx, func(tx *sql.Tx) queries { return queries{tx} })
	store := dedup.Adapt[queries, *sql.Tx](b.store, func(q queries) *sql.Tx { return q.tx })
	rcv := newReceiver(t, inTx, store, nil)
	ev := newEvent(1)
	apply := func(ctx context.Context, q queries, ev receiver.Event) error { return b.effect(ctx, q.tx, ev) }
	require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(rcv.Handler(receiver.State(apply))).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
	require.Nil(t, receiver.Adapt[queries, *sql.Tx](nil, nil))
}

// The error says that the function has ended the transaction. The driver's text alone reads
// as if the receiver had.
func TestFunctionThatEndsTheTransaction(t *testing.T) {
	for name, end := range map[string]func(*sql.Tx) error{"commits": (*sql.Tx).Commit, "rolls back": (*sql.Tx).Rollback} {
		b, _ := onSQLite(t)
		_, err := newReceiver(t, b.inTx, b.store, nil).Receive(t.Context(), newSender(t).Request(newEvent(1)).Message(),
			receiver.State(func(_ context.Context, tx *sql.Tx, _ receiver.Event) error { return end(tx) }))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, receiver.ReasonCommit, failure.Reason, name)
		require.ErrorContains(t, err, "must neither commit it nor roll it back", name)
	}
}
