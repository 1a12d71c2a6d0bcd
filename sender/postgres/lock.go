package postgres

import (
	"fmt"

	"github.com/surehook/surehook/sender"
)

// lock locks the heads of subscriptions, and reads the subscriptions. The statement after
// the lock has a newer snapshot, so it misses nothing that came before the lock.
func (b *batch) lock(subscriptions []int64) error {
	var missing []int64
	for _, no := range subscriptions {
		if b.heads.by[no] == nil {
			missing = append(missing, no)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	missing = distinct(missing)
	var locked []int64
	err := b.send(b.lockQuery(missing).rows(func(r rows) error {
		h, err := scanHead(r)
		locked = append(locked, h.subscription)
		if err == nil {
			b.heads.put(h)
		}
		return err
	}))
	if err == nil {
		err = b.allLocked(missing)
	}
	if err != nil {
		return err
	}
	return b.readSubscriptions(locked)
}

// lockQuery returns the statement that locks heads. The subscriptions are given in their
// order.
func (b *batch) lockQuery(subscriptions []int64) query {
	if b.again {
		return b.query(lockHeads, subscriptions)
	}
	return b.query(lockHeadsAt.of(len(subscriptions)), given(subscriptions), given(rowsAt(&b.rowAt, b.rowAt.heads, subscriptions)))
}

// allLocked returns an error if heads are missing: they may have moved while they were
// waited for. When the transaction runs again, they are found by their keys.
func (b *batch) allLocked(subscriptions []int64) error {
	if b.again {
		return nil
	}
	for _, no := range subscriptions {
		if b.heads.by[no] == nil {
			return fmt.Errorf("%w: the head of subscription number %d was not found where it was", sender.ErrRetryTx, no)
		}
	}
	return nil
}

// readSubscriptions reads the subscriptions of heads that are locked, unless they were read
// since.
func (b *batch) readSubscriptions(locked []int64) error {
	var unknown []int64
	for _, no := range locked {
		if b.subs[no] == nil {
			unknown = append(unknown, no)
		}
	}
	if err := b.subscriptions(unknown, b.subs); err != nil {
		return err
	}
	if err := b.skippedOf(b.subs); err != nil {
		return err
	}
	for _, no := range locked {
		if b.subs[no] == nil {
			b.subs[no] = b.missingSubscription(no)
		}
	}
	if err := b.cancelUnseen(locked); err != nil {
		return err
	}
	for _, no := range locked {
		sub := b.subs[no]
		if b.heads.stored[no].lane == noLane && !b.heads.by[no].missing {
			b.damage.Tell(b.ctx, no, "its lane in surehook_heads does not exist", "it is taken for a new one")
		}
		b.heads.by[no].catchUp(sub, b.now)
	}
	return nil
}

// lockOne locks the head of a subscription that must exist.
func (b *batch) lockOne(subscription int64) (*head, *subscription, error) {
	if err := b.lock([]int64{subscription}); err != nil {
		return nil, nil, err
	}
	h := b.heads.by[subscription]
	if h == nil || b.subs[subscription].status == statusMissing {
		return nil, nil, fmt.Errorf("%w: subscription number %d", sender.ErrNotFound, subscription)
	}
	return h, b.subs[subscription], nil
}
