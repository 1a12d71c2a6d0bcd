package sqlite

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	restartLease     = `UPDATE surehook_leases SET tries = 1, first_at = claimed_at, stood = 0, spared = 0, epoch = ? WHERE subscription = ? AND event = ?`
	restartWaiting   = `UPDATE surehook_waiting SET due = ?, tries = 0, first_at = 0, stood = 0, spared = 0, epoch = ?, rank = 0 WHERE subscription = ? AND event = ?`
	deletePendingOne = `DELETE FROM surehook_pending WHERE subscription = ? AND event = ?`
	deleteEnd        = `DELETE FROM surehook_ended WHERE subscription = ? AND event = ?`
	lastNumber       = `SELECT coalesce(max(number), 0) FROM surehook_attempts WHERE event = ? + 0 AND subscription = ? + 0`
)

// Redeliver implements history.Store.
func (s *Store) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	err := s.write(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		d, err := w.delivery(k, b.now)
		if err != nil {
			return err
		}
		if err := rules.Redeliver(&d.Delivery, d.deleted, notBefore); err != nil {
			return err
		}
		h, err := b.heads.one(k.Subscription)
		if err != nil {
			return err
		}
		if err := b.redeliver(h, k, d); err != nil {
			return err
		}
		return b.storeHeads()
	})
	if err != nil {
		return aboutDelivery(id, err)
	}
	s.Wake()
	return nil
}

// redeliver makes a delivery due at once, and starts its schedule anew.
func (b *batch) redeliver(h *head, k dispatch.DeliveryKey, d *delivery) error {
	switch {
	case d.live != nil && d.live.claimedAt != 0: // the attempt in hand becomes the first of the new schedule
		return b.execs(restartLease, h.epoch, k.Subscription, k.Event)
	case d.live != nil && d.live.behind:
		return b.execs(restartBehind, b.now, h.epoch, k.Subscription, k.Event)
	case d.live != nil && d.live.pending:
		// Pending deliveries are claimed in the order of the events, so this one may not
		// stay among them.
		if err := b.execs(deletePendingOne, k.Subscription, k.Event); err != nil {
			return err
		}
		h.pending--
		return b.wait(h, &live{subscription: k.Subscription, event: k.Event}, b.now, rankFresh)
	case d.live != nil:
		h.lower(b.now)
		return b.execs(restartWaiting, b.now, h.epoch, k.Subscription, k.Event)
	}
	if d.Status == sender.StatusDeadLettered {
		h.dead--
	}
	if err := b.execs(deleteEnd, k.Subscription, k.Event); err != nil {
		return err
	}
	if err := b.freeFrom(h, k.Event); err != nil {
		return err
	}
	l := live{subscription: k.Subscription, event: k.Event, single: d.Status == sender.StatusDelivered}
	if err := b.row(lastNumber, k.Event, k.Subscription).Scan(&l.number); err != nil { // numbers go on
		return err
	}
	sub, err := b.known(k.Subscription)
	if err != nil {
		return err
	}
	return b.sendAgain(h, sub, &waits{live: l, due: b.now})
}
