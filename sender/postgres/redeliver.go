package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	restartLease   = `UPDATE surehook_leases SET tries = 1, first_at = claimed_at, stood = 0, spared = false, epoch = $3 WHERE subscription = $1 AND event = $2`
	restartWaiting = `UPDATE surehook_waiting SET due = $3, tries = 0, first_at = NULL, stood = 0, spared = false, epoch = $4, rank = 0 WHERE subscription = $1 AND event = $2`
	deletePending  = `DELETE FROM surehook_pending WHERE subscription = $1 AND event = $2`
	deleteEnd      = `DELETE FROM surehook_ended WHERE subscription = $1 AND event = $2`
	lastNumber     = `SELECT coalesce(max(number), 0) FROM surehook_attempts WHERE event = $1 AND subscription = $2`
)

// Redeliver implements history.Store.
func (c *core) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	err := c.batch(ctx, dispatch.Batch{}, func(b *batch) error {
		k, err := b.keyOf(id)
		if err != nil {
			return err
		}
		h, sub, err := b.lockOne(k.Subscription)
		if err != nil {
			return err
		}
		d, err := b.delivery(k) // nobody changes it while its head is locked
		if err != nil {
			return err
		}
		if err := rules.Redeliver(&d.Delivery, d.deleted, notBefore); err != nil {
			return err
		}
		return b.redeliver(h, sub, k, d)
	})
	if err != nil {
		return aboutDelivery(id, err)
	}
	c.Wake()
	return nil
}

// redeliver makes a delivery due at once, and starts its schedule anew.
func (b *batch) redeliver(h *head, sub *subscription, k dispatch.DeliveryKey, d *delivery) error {
	switch {
	case d.live != nil && d.live.claimedAt != none: // the attempt in flight becomes the first of the new schedule
		return b.execs(restartLease, k.Subscription, k.Event, h.epoch)
	case d.live != nil && d.behind:
		return b.execs(restartBehind, k.Subscription, k.Event, b.now, h.epoch)
	case d.live != nil && d.live.pending:
		// Pending deliveries are claimed in the order of the events, so it cannot stay
		// there.
		if err := b.execs(deletePending, k.Subscription, k.Event); err != nil {
			return err
		}
		h.pending--
		b.wait(h, &live{subscription: k.Subscription, event: k.Event, notice: d.Event.Notice, bytes: d.bytes}, b.now, rankFresh, 0)
		return nil
	case d.live != nil:
		h.waitingFrom = min(h.waitingFrom, b.now)
		h.lower(b.now)
		return b.execs(restartWaiting, k.Subscription, k.Event, b.now, h.epoch)
	}
	if d.Status == sender.StatusDeadLettered {
		h.dead--
	}
	if err := b.execs(deleteEnd, k.Subscription, k.Event); err != nil {
		return err
	}
	l := live{subscription: k.Subscription, event: k.Event, single: d.Status == sender.StatusDelivered, notice: d.Event.Notice, bytes: d.bytes}
	if err := b.row(lastNumber, k.Event, k.Subscription).Scan(&l.number); err != nil { // numbers go on
		return err
	}
	if err := b.freeFrom(h, k); err != nil {
		return err
	}
	return b.sendAgain(h, sub, nameOf(d.Event.Object), waits{l, b.now, rankFresh, 0})
}
