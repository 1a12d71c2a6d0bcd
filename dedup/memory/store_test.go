package memory_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func TestStore(t *testing.T) {
	deduptest.Run(t, func(*testing.T) deduptest.Harness[*memory.Tx] {
		s := memory.New()
		return deduptest.Harness[*memory.Tx]{Store: s, InTx: s.InTx}
	})
}

func second[T any](_ T, err error) error { return err }

// A transaction waits for those that hold the same id, and for no others. The wait ends
// with the context.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memory.New(), t.Context()
		mark := func(ctx context.Context, id string) (fresh bool, err error) {
			err = s.InTx(ctx, func(tx *memory.Tx) (err error) {
				fresh, err = s.Mark(ctx, tx, "test", id, time.Now())
				return err
			})
			return fresh, err
		}
		require.NoError(t, second(mark(ctx, "old")))
		results := make(chan error, 2)
		err := s.InTx(ctx, func(tx *memory.Tx) error {
			require.NoError(t, second(s.Mark(ctx, tx, "test", "a", time.Now())))
			require.NoError(t, second(s.Mark(ctx, tx, "test", "old", time.Now())))

			fresh, err := mark(ctx, "b")
			require.NoError(t, err)
			require.True(t, fresh)
			fresh, err = mark(ctx, "old")
			require.NoError(t, err)
			require.False(t, fresh, "a duplicate of what is committed waits for nobody")

			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(t, second(mark(short, "a")), context.DeadlineExceeded)

			go func() { results <- second(mark(ctx, "a")) }()
			synctest.Wait()
			require.Empty(t, results, "it waits")
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, <-results)
	})
}

func TestTransactionEnds(t *testing.T) {
	s, ctx := memory.New(), t.Context()
	var kept *memory.Tx
	mark := func(tx *memory.Tx) error {
		kept = tx
		return second(s.Mark(ctx, tx, "test", "a", time.Now()))
	}
	requireGone := func() {
		t.Helper()
		require.ErrorContains(t, mark(kept), "the transaction has ended")
		failed := errors.New("failed")
		require.Equal(t, failed, s.InTx(ctx, func(tx *memory.Tx) error {
			fresh, err := s.Mark(ctx, tx, "test", "a", time.Now())
			require.NoError(t, err)
			require.True(t, fresh)
			return failed
		}))
	}

	require.PanicsWithValue(t, "on purpose", func() {
		_ = s.InTx(ctx, func(tx *memory.Tx) error {
			require.NoError(t, mark(tx))
			panic("on purpose")
		})
	})
	requireGone()

	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.InTx(ctx, func(tx *memory.Tx) error {
			_ = mark(tx)
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	requireGone()

	ended, cancel := context.WithCancel(ctx)
	require.ErrorIs(t, s.InTx(ended, func(tx *memory.Tx) error {
		defer cancel()
		return mark(tx)
	}), context.Canceled)
	requireGone()
	require.ErrorIs(t, s.InTx(ended, func(*memory.Tx) error { panic("not reached") }), context.Canceled)
}

func TestForeignTransaction(t *testing.T) {
	s, ctx := memory.New(), t.Context()
	require.ErrorIs(t, second(s.Mark(ctx, nil, "test", "a", time.Now())), dedup.ErrInvalid)
	require.NoError(t, memory.New().InTx(ctx, func(tx *memory.Tx) error {
		require.ErrorIs(t, second(s.Mark(ctx, tx, "test", "a", time.Now())), dedup.ErrInvalid)
		return nil
	}))
}

// The transaction that would close the circle gets an error. The other one goes on.
func TestCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memory.New(), t.Context()
		other := make(chan error, 1)
		err := s.InTx(ctx, func(tx *memory.Tx) error {
			require.NoError(t, second(s.Mark(ctx, tx, "test", "a", time.Now())))
			go func() {
				other <- s.InTx(ctx, func(tx *memory.Tx) error {
					if _, err := s.Advance(ctx, tx, "test", dedup.Object{Type: "x", ID: "1"}, 1); err != nil {
						return err
					}
					return second(s.Mark(ctx, tx, "test", "a", time.Now()))
				})
			}()
			synctest.Wait()
			return second(s.Advance(ctx, tx, "test", dedup.Object{Type: "x", ID: "1"}, 1))
		})
		require.ErrorIs(t, err, dedup.ErrRetryTx)
		require.NoError(t, <-other)
	})
}

// A transaction that has given up a wait is in no circle.
func TestGivenUpWaitIsNoCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memory.New(), t.Context()
		other := make(chan error, 1)
		proceed := make(chan struct{})
		err := s.InTx(ctx, func(tx *memory.Tx) error {
			require.NoError(t, second(s.Mark(ctx, tx, "test", "a", time.Now())))
			go func() {
				other <- s.InTx(ctx, func(tx *memory.Tx) error {
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					if _, err := s.Mark(short, tx, "test", "a", time.Now()); !errors.Is(err, context.DeadlineExceeded) {
						return errors.New("it did not wait")
					}
					err := second(s.Mark(ctx, tx, "test", "b", time.Now()))
					<-proceed
					return err
				})
			}()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			time.AfterFunc(time.Second, func() { close(proceed) })
			return second(s.Mark(ctx, tx, "test", "b", time.Now()))
		})
		require.NoError(t, err)
		require.NoError(t, <-other)
	})
}

func BenchmarkMarkAdvanceCommit(b *testing.B) {
	s, ctx := memory.New(), b.Context()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := strconv.Itoa(i)
		if err := s.InTx(ctx, func(tx *memory.Tx) error {
			if _, err := s.Mark(ctx, tx, "bench", id, time.Now()); err != nil {
				return err
			}
			return second(s.Advance(ctx, tx, "bench", dedup.Object{Type: "x", ID: id}, 1))
		}); err != nil {
			b.Fatal(err)
		}
	}
}
