package memory

import (
	"context"

	"github.com/surehook/surehook/sender"
)

// Sweep implements sender.DispatchStore. Attempts in flight are left to their
// results, or to the end of their leases.
func (s *Store) Sweep(ctx context.Context, limit int) (ended int, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		w := &batch{tx: tx, now: s.now(), targets: map[int64]*sender.Target{}}
		var still []*subscription
		for _, sub := range s.closing {
			var over []*delivery
			for _, d := range sub.live.items {
				if len(over) == limit-ended {
					break
				}
				if !d.live.inFlight(w.now) {
					over = append(over, d)
				}
			}
			for _, d := range over {
				if err := w.cancel(d); err != nil {
					return err
				}
			}
			ended += len(over)
			if sub.live.first() != nil {
				still = append(still, sub)
			}
		}
		set(tx, &s.closing, still)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

// cancel ends a live delivery of a deleted subscription.
func (w *batch) cancel(d *delivery) error {
	if !d.live.leased.IsZero() {
		_, err := w.settle(d, d.interrupted(0))
		return err
	}
	status := ofDeleted(d.live, sender.ClassInterrupted)
	w.tx.setLive(d, nil)
	if status == sender.StatusCancelled {
		set(w.tx, &d.ended, status)
	}
	return nil
}
