package postgres

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
)

// statusMissing is the status of a subscription whose row is not there: none of its
// deliveries is claimed, and results have no consequences for it.
const statusMissing = "missing"

// standIn puts a head in memory for each one whose row is missing, so that a row that
// somebody removed does not end the whole step. Such a head is not stored. Deliveries that
// arrive for it stay pending, results are recorded, and nothing is claimed: see
// head.catchUp.
func (b *batch) standIn(subscriptions []int64) error {
	var missing []int64
	for _, no := range subscriptions {
		if b.heads.by[no] == nil {
			missing = append(missing, no)
			b.heads.by[no] = &head{subscription: no, missing: true, nextDue: never, resumedTo: -1, leasesEnd: none}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := b.readSubscriptions(missing); err != nil {
		return err
	}
	for _, no := range missing {
		if b.subs[no].status != statusMissing { // or there is none of that number any more
			b.damage.Tell(b.ctx, no, "surehook_heads has no row of it", "its deliveries are kept, and none is claimed, until the row is there")
		}
	}
	return nil
}

// missingSubscription stands for a subscription whose row, or whose subscriber's row, is
// missing.
func (b *batch) missingSubscription(no int64) *subscription {
	if !b.heads.by[no].missing {
		b.damage.Tell(b.ctx, no, "surehook_subscriptions has no row of it, or surehook_subscribers none of its subscriber", "none of its deliveries is claimed until the row is there")
	}
	return &subscription{
		Target: &dispatch.Target{SubscriptionNo: no, SubscriberNumber: b.heads.by[no].subscriber, Settings: &sender.Settings{}},
		status: statusMissing, skippedTo: -1,
	}
}

func (w *work) readFilter(no int64, expression string) *filter.Filter {
	f := filter.Read(expression)
	if err := f.Unreadable(); err != nil {
		w.damage.Tell(w.ctx, no, "its filter cannot be used: "+err.Error(), "it gets nothing but what is addressed to it; Registry.Update with Filter mends it")
	}
	return f
}

// noLane stands for a stored lane that does not exist.
const noLane = sender.Lanes

// laneOf returns the lane that is stored as a number, or noLane.
func laneOf(stored int16) sender.Lane {
	if stored < 0 || stored >= int16(sender.Lanes) {
		return noLane
	}
	return sender.Lane(stored)
}
