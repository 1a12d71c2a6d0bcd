package postgres

import (
	"github.com/surehook/surehook/sender"
)

// statusMissing is that of a subscription whose row is not there: nothing of it is
// claimed, and it has no consequences.
const statusMissing = "missing"

// standIn has heads whose rows are not there stand in their places, so that one that
// somebody has removed ends nobody else's step. They are not stored. What arrives is kept
// among what is pending, and what is recorded is, but nothing is claimed: see
// head.meet.
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

// missingSubscription is what stands for one whose row, or whose subscriber's, is not
// there.
func (b *batch) missingSubscription(no int64) *subscription {
	if !b.heads.by[no].missing {
		b.damage.Tell(b.ctx, no, "surehook_subscriptions has no row of it, or surehook_subscribers none of its subscriber", "none of its deliveries is claimed until the row is there")
	}
	return &subscription{
		Target: &sender.Target{SubscriptionNo: no, SubscriberNumber: b.heads.by[no].subscriber, Settings: &sender.Settings{}},
		status: statusMissing,
	}
}

// noLane is one that is stored and that there is not.
const noLane = sender.Lanes

// laneOf is a lane as it is stored, or noLane.
func laneOf(stored int16) sender.Lane {
	if stored < 0 || stored >= int16(sender.Lanes) {
		return noLane
	}
	return sender.Lane(stored)
}
