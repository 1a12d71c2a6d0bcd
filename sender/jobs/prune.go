package jobs

import (
	"context"
	"time"
)

// Prune removes the jobs that were finished longer ago than Config.Retention, in
// short transactions, and returns how many. Run does it in the background.
func (j *Jobs[Tx]) Prune(ctx context.Context) (pruned int, err error) {
	for {
		n := 0
		err := j.inTx(ctx, func(tx Tx) (err error) {
			n, err = j.store.PruneTx(ctx, tx, PruneQuery{Age: j.cfg.Retention, Limit: pruneAtOnce, Bytes: pruneBytes})
			return err
		})
		if err != nil {
			return pruned, err
		}
		pruned += n
		if n == 0 {
			return pruned, nil
		}
	}
}

// pruning prunes from time to time until ctx ends.
func (j *Jobs[Tx]) pruning(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if _, err := j.Prune(ctx); err != nil && ctx.Err() == nil {
			j.cfg.Logger.WarnContext(ctx, "finished jobs could not be pruned; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
