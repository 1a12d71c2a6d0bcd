package memory

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// Sweep implements dispatch.Store. Attempts in flight are not touched: they end
// with their results, or with their leases.
func (s *Store) Sweep(ctx context.Context, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	if p.Limit == 0 {
		return out, ctx.Err() // it keeps no counts elsewhere
	}
	err = s.inTx(ctx, func(tx *Tx) error {
		w := &batch{Batch: &dispatch.Batch{Announce: p.Announce}, tx: tx, now: s.now(), targets: map[int64]*dispatch.Target{}}
		tx.beginMinute(w.now)
		over := w.cancelled(p.Cancels(len(s.halted) > 0 || slices.ContainsFunc(s.stopped, s.freeable)))
		tx.superseding = rules.SupersedingInSweep(p.Limit - len(over))
		for _, d := range over {
			if err := w.cancel(d); err != nil {
				return err
			}
		}
		if w.rollup.Attempts() > 0 {
			tx.tally(&w.rollup)
		}
		tx.forget()
		freed, err := w.releaseStops(p.NotBefore)
		if err != nil {
			return err
		}
		tx.goOnWithHalted()
		out = dispatch.Swept{Ended: len(over) + tx.superseding.Ended(), Freed: freed, Notices: w.notices}
		for _, sub := range s.closing {
			if !sub.deleted && s.closed(sub) {
				tx.remove(sub)
			}
		}
		tx.swept(w.now)
		return nil
	})
	if err != nil {
		return dispatch.Swept{}, err
	}
	return out, nil
}

// cancelled finds up to limit live deliveries that are to be ended now.
func (w *batch) cancelled(limit int) (over []*delivery) {
	look := func(ds []*delivery) {
		for _, d := range ds {
			if len(over) == limit {
				return
			}
			if d.live != nil && d.cancelled() && !d.live.inFlight(w.now) {
				over = append(over, d)
			}
		}
	}
	for _, sub := range w.tx.store.deleted {
		look(sub.all())
	}
	// A delivery may have been sent again since it was dropped. The loop above finds it if its
	// subscription was deleted.
	look(filter(w.tx.store.dropped, func(d *delivery) bool { return !slices.Contains(over, d) }))
	return over
}

// cancel ends a live delivery.
func (w *batch) cancel(d *delivery) error {
	if !d.live.leased.IsZero() {
		_, err := w.settle(d, rules.Lost(d.forDecision(), d.live.token, d.live.leased, time.Time{}, 0))
		return err
	}
	w.tx.end(d, rules.Cancelled(d.live.single))
	return nil
}

// forget takes out of the lists for Sweep all that needs no sweep any more.
func (tx *Tx) forget() {
	s := tx.store
	set(tx, &s.deleted, filter(s.deleted, func(sub *subscription) bool { return sub.waits() }))
	set(tx, &s.dropped, filter(s.dropped, func(d *delivery) bool { return d.live != nil && d.live.dropped }))
	set(tx, &s.closing, filter(s.closing, func(sub *subscription) bool { return !sub.deleted }))
}

// swept notes which of the deleted subscriptions have nothing live any more, and erases what
// they were posted with.
func (tx *Tx) swept(now time.Time) {
	s := tx.store
	for _, sub := range s.ending {
		if !sub.waits() && len(sub.leased) == 0 {
			set(tx, &sub.sweptAt, now)
			set(tx, &sub.Settings, sender.Settings{})
			set(tx, &s.swept, append(s.swept, sub))
		}
	}
	set(tx, &s.ending, filter(s.ending, func(sub *subscription) bool { return sub.sweptAt.IsZero() }))
}

// filter returns a new list, so that a roll-back has the old one.
func filter[T any](list []T, keep func(T) bool) (kept []T) {
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}
