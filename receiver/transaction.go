package receiver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

// A transaction that lost against another one is run up to this many times. The waits
// between are about 5, 10 and 20 ms, each varied by half, so that two that met do not
// meet again.
const (
	runs      = 4
	firstWait = 5 * time.Millisecond
)

// transact runs step in a transaction, again if it lost against another one. It
// returns nil only after the commit.
func (r *Receiver[Tx]) transact(ctx context.Context, step func(Tx) *Error) *Error {
	for run := 1; ; run++ {
		err := r.runOnce(ctx, step)
		if err == nil || err.Reason != ReasonConflict || run == runs {
			return err
		}
		wait := time.Duration((0.5 + rand.Float64()) * float64(firstWait<<(run-1)))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fail(ReasonTimeout, err)
		}
	}
}

// runOnce believes step rather than inTx: an inTx that swallows an error, or that
// never calls its function, does not turn a failure into a success.
func (r *Receiver[Tx]) runOnce(ctx context.Context, step func(Tx) *Error) *Error {
	var is struct {
		called bool
		failed *Error
	}
	begin, end := context.WithCancelCause(ctx)
	defer end(nil)
	waiting := time.AfterFunc(timeToBegin(ctx), func() { end(errNotBegun) })
	defer waiting.Stop()
	err := contain(func() error {
		return r.inTx(begin, func(tx Tx) error {
			if !is.called && !waiting.Stop() {
				return errNotBegun
			}
			is.called = true
			// Caught here, so that even an inTx that does not expect panics rolls back.
			err := contain(func() error {
				is.failed = step(tx)
				return nil
			})
			if err != nil {
				is.failed = fail(ReasonPanic, err)
			}
			if is.failed == nil && ctx.Err() != nil {
				is.failed = fail(ReasonTimeout, ctx.Err())
			}
			if is.failed != nil {
				return is.failed
			}
			return nil
		})
	})
	switch {
	case is.failed != nil:
		return is.failed
	case err == nil && is.called:
		return nil
	case isPanic(err):
		return fail(ReasonPanic, err)
	case !is.called && errors.Is(context.Cause(begin), errNotBegun):
		if err != nil && !errors.Is(err, errNotBegun) { // it may name the server
			return fail(ReasonDatabase, fmt.Errorf("%w: %w", errNotBegun, err))
		}
		return fail(ReasonDatabase, errNotBegun)
	case err == nil:
		return fail(ReasonDatabase, errors.New("the InTx returned nil without having run its function"))
	case is.called && errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		return fail(ReasonCommit, fmt.Errorf("the transaction had ended before the receiver committed it: a function must neither commit it nor roll it back: %w", err))
	case is.called:
		// The context's end is left out: a timeout would say that nothing was changed.
		return failDB(context.WithoutCancel(ctx), ReasonCommit, err)
	default:
		return failDB(ctx, ReasonDatabase, err)
	}
}

// errNotBegun says what an operator can do about a transaction that had to wait for too long.
var errNotBegun = errors.New("no transaction could be begun within half of the time that was left: the database is slow or away, or its pool has too few connections for so many events at a time")

// timeToBegin is how long a transaction may wait for a connection: half of the time that is
// left. If more events come than the database takes, each would wait until its time is almost
// over, and none would be committed. A driver closes the connection of a statement whose
// context ends, so that even fewer could be.
func timeToBegin(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return time.Until(deadline) / 2
}

// failDB decides whether the transaction is run again, came too late, or failed.
func failDB(ctx context.Context, rest Reason, err error) *Error {
	switch {
	case ctx.Err() != nil:
		return fail(ReasonTimeout, err)
	case errors.Is(err, dedup.ErrRetryTx), dberr.Classify(err) == dberr.Retry:
		return fail(ReasonConflict, err)
	default:
		return fail(rest, err)
	}
}

// background is ctx without its end, but with an end of its own. A client that leaves must
// not stop a transaction that is about to commit, and a transaction that hangs must not
// run for ever.
func background(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// contain makes an error of a panic in f.
func contain(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}
