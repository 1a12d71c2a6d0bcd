package jobs

import (
	"context"
	"errors"
	"time"
)

// doubtShare of the lease is how long a look at claims in doubt may take. A connection that is
// gone can hold the jobs' locks until the server notices.
const doubtShare = 10

// doubt is a claim whose transaction has failed: it may have been committed all the same, or
// may still be. Or the worker was stopped meanwhile. Its jobs are begun by nobody, so the worker
// gives them back as soon as it finds them. Otherwise each would wait for the end of its lease,
// and lose a try.
type doubt struct {
	token int64
	jobs  []Record  // what unclaim needs of them, as they were before
	until time.Time // their leases have ended by then
}

// giveBack looks for the jobs of claims in doubt, and makes them due as they were before. If the
// database fails, the next call looks for them.
func (w *worker[Tx]) giveBack(ctx context.Context) {
	if len(w.doubts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.j.cfg.Lease/doubtShare)
	defer cancel()
	err := w.j.inTx(ctx, func(tx Tx) error {
		for _, d := range w.doubts {
			for _, before := range d.jobs {
				r, _, err := w.j.store.LockTx(ctx, tx, Key{ID: before.ID})
				switch {
				case errors.Is(err, ErrNotFound):
					continue
				case err != nil:
					return err
				case r.Status != Running || r.Token != d.token:
					continue
				}
				r.unclaim(before)
				if err := w.j.store.UpdateTx(ctx, tx, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		w.doubts = nil
		return
	}
	w.j.cfg.Logger.WarnContext(ctx, "jobs that were claimed and not begun could not be looked for; it is tried again until their leases end", "error", err)
	now := w.j.cfg.Now()
	for len(w.doubts) > 0 && !w.doubts[0].until.After(now) {
		w.doubts = w.doubts[1:]
	}
}
