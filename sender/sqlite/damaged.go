package sqlite

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
)

// statusMissing is the status of a subscription whose row is not there. None of its
// deliveries is claimed, and their results do not change it.
const statusMissing = "missing"

// standIn puts a head in the place of one whose row is not there, so that a row which
// somebody has removed stops no other subscription. The head is not stored. New
// deliveries are kept as pending ones, and results are recorded, but nothing is claimed.
func (hs *heads) standIn(no int64) error {
	hs.by[no] = &head{subscription: no, missing: true, nextDue: never, resumedTo: -1}
	var there bool // false: the subscription was pruned
	err := hs.w.row(`SELECT EXISTS (SELECT 1 FROM surehook_subscriptions WHERE no = ?)`, no).Scan(&there)
	if err == nil && there {
		hs.w.damage.Tell(hs.w.ctx, no, "surehook_heads has no row of it", "its deliveries are kept, and none is claimed, until the row is there")
	}
	return err
}

// missingSubscription returns a stand-in for a subscription whose row is not there, or
// whose subscriber's row is not.
func (w *work) missingSubscription(no int64) *subscription {
	w.damage.Tell(w.ctx, no, "surehook_subscriptions has no row of it, or surehook_subscribers none of its subscriber", "none of its deliveries is claimed until the row is there")
	return &subscription{Target: dispatch.Target{SubscriptionNo: no, Settings: &sender.Settings{}}, status: statusMissing}
}

func (w *work) readFilter(no int64, expression string) *filter.Filter {
	f := filter.Read(expression)
	if err := f.Unreadable(); err != nil {
		w.damage.Tell(w.ctx, no, "its filter cannot be used: "+err.Error(), "it gets nothing but what is addressed to it; Registry.Update with Filter mends it")
	}
	return f
}

// noLane stands for a stored number that is no lane.
const noLane = sender.Lanes

// laneOf returns the lane that a stored number means, or noLane.
func laneOf(stored int64) sender.Lane {
	if stored < 0 || stored >= int64(sender.Lanes) {
		return noLane
	}
	return sender.Lane(stored)
}
