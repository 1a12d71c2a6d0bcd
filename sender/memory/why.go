package memory

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// Facts implements history.Store. It looks at every live delivery of the
// subscription.
func (s *Store) Facts(ctx context.Context, id string) (f history.Facts, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		now, sub := s.now(), d.sub
		f = history.Facts{
			Now: now, Delivery: d.summary(now),
			Status: sub.Status, HeldSince: sub.heldSince, Reason: sub.DisabledReason, Health: sub.Health,
			Settings: cloneSettings(sub.Settings), InFlight: sub.inFlight(now),
		}
		f.Delivery.Attempts = copied(d.telling())
		if sub.deleted {
			f.Status = ""
		}
		if rate := sub.Settings.Rate; rate > 0 {
			if granted, _, again := rules.TakeRate(rate, sub.rateAt, now, 1); granted == 0 {
				f.RateAgain = again
			}
		}
		if f.HoldsBack = d.stops; d.live == nil {
			return nil
		}
		if d.live.behind {
			first := d.sub.waitedFor(d.event.info.Object)
			f.Behind, f.BehindDead = first.id(), first.stops
		}
		f.Tries, f.Single, f.Spared = d.live.tries, d.live.single, d.live.spared
		if !d.live.leased.IsZero() {
			f.Leased, f.Lease = d.live.leased, d.live.due
			return nil
		}
		if due := f.Delivery.NextAttemptAt; due.IsZero() || due.After(now) {
			return nil
		}
		for _, other := range sub.live.items {
			if other.before(d) {
				f.Ahead = min(f.Ahead+1, history.MaxAhead+1)
			}
		}
		return nil
	})
	return f, err
}
