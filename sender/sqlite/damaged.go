package sqlite

import "github.com/surehook/surehook/sender"

// statusMissing is that of a subscription whose row is not there: nothing of it is
// claimed, and it has no consequences.
const statusMissing = "missing"

// standIn has a head whose row is not there stand in its place, so that one that somebody
// has removed ends nobody else's step. It is not stored. What arrives is kept among what
// is pending, and what is recorded is, but nothing is claimed.
func (hs *heads) standIn(no int64) error {
	hs.by[no] = &head{subscription: no, missing: true, nextDue: never, resumedTo: -1}
	var there bool // or there is none of that number any more
	err := hs.w.row(`SELECT EXISTS (SELECT 1 FROM surehook_subscriptions WHERE no = ?)`, no).Scan(&there)
	if err == nil && there {
		hs.w.damage.Tell(hs.w.ctx, no, "surehook_heads has no row of it", "its deliveries are kept, and none is claimed, until the row is there")
	}
	return err
}

// missingSubscription is what stands for one whose row, or whose subscriber's, is not
// there.
func (w *work) missingSubscription(no int64) *subscription {
	w.damage.Tell(w.ctx, no, "surehook_subscriptions has no row of it, or surehook_subscribers none of its subscriber", "none of its deliveries is claimed until the row is there")
	return &subscription{Target: sender.Target{SubscriptionNo: no, Settings: &sender.Settings{}}, status: statusMissing}
}

// noLane is one that is stored and that there is not.
const noLane = sender.Lanes

// laneOf is a lane as it is stored, or noLane.
func laneOf(stored int64) sender.Lane {
	if stored < 0 || stored >= int64(sender.Lanes) {
		return noLane
	}
	return sender.Lane(stored)
}
