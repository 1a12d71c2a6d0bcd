package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/dberr"
)

// DefaultPruneBatch is how many markers [Prune] removes in one transaction by default: a
// few milliseconds' work.
const DefaultPruneBatch = 1000

// pruneTime bounds a batch. A connection can be dead without a word, and then nothing else
// would end it. It is long, for a batch may have to pass over millions of dead rows.
const pruneTime = 10 * time.Minute

// Prune removes every marker that was marked before before, oldest first, and then the
// requests to apply again that are as old. It does so in batches of at most batch (0:
// [DefaultPruneBatch]), each in a transaction of its own that inTx runs: it must commit
// when its function returns nil and roll back otherwise. Prune returns how many markers
// were removed for good, also beside an error.
//
// A batch that loses against another transaction is run again, up to ten times. One that
// takes longer than ten minutes is given up: then its error matches context.DeadlineExceeded.
// Between batches Prune waits for as long as the last one took, so that others
// have the database for half of the time. Several processes may prune at once.
func Prune[Tx any](ctx context.Context, inTx func(context.Context, func(Tx) error) error, s Store[Tx], before time.Time, batch int) (int, error) {
	if batch == 0 {
		batch = DefaultPruneBatch
	}
	if err := CheckLimit(batch); err != nil {
		return 0, err
	}
	total := 0
	for {
		start := time.Now()
		removed, err := pruneBatch(ctx, inTx, s, before, batch)
		if err != nil {
			return total, fmt.Errorf("dedup: pruning, after %d markers: %w", total, err)
		}
		total += removed
		if removed < batch {
			return total, nil
		}
		if err := wait(ctx, time.Since(start)); err != nil {
			return total, fmt.Errorf("dedup: pruning, after %d markers: %w", total, err)
		}
	}
}

func pruneBatch[Tx any](ctx context.Context, inTx func(context.Context, func(Tx) error) error, s Store[Tx], before time.Time, batch int) (removed int, err error) {
	const tries = 10
	pause := 10 * time.Millisecond
	for try := 1; ; try++ {
		removed, err = pruneOnce(ctx, inTx, s, before, batch)
		// The begin or the commit may have lost too, and their errors are the driver's.
		again := errors.Is(err, ErrRetryTx) || dberr.Classify(err) == dberr.Retry
		if err == nil || !again || try == tries {
			return removed, err
		}
		if ctxErr := wait(ctx, pause); ctxErr != nil {
			return 0, errors.Join(ctxErr, err)
		}
		pause = min(2*pause, time.Second)
	}
}

func pruneOnce[Tx any](ctx context.Context, inTx func(context.Context, func(Tx) error) error, s Store[Tx], before time.Time, batch int) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	err = inTx(ctx, func(tx Tx) (err error) {
		removed, err = s.Prune(ctx, tx, before, batch)
		return err
	})
	return removed, err
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
