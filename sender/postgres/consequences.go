package postgres

import (
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// A caller who is changing the subscription has its row locked, perhaps for long.
	disableSubscription = `UPDATE surehook_subscriptions SET status = 'disabled', held_at = $2, disabled_reason = $3, version = version + 1
		WHERE no = (SELECT no FROM surehook_subscriptions WHERE no = $1 AND status = 'active' FOR UPDATE SKIP LOCKED)`
	selectEventID = `SELECT e.id FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = $1`
)

// disable makes an active subscription disabled in a recording, and reports whether
// it did. What somebody is changing just now is left to the next failure.
func (b *batch) disable(h *head, sub *subscription, reason string) (bool, error) {
	n, err := b.exec(disableSubscription, sub.SubscriptionNo, b.now, reason)
	if err != nil || n == 0 {
		return false, err
	}
	h.open, sub.status = false, string(sender.SubscriptionDisabled)
	return true, nil
}

// consequences are those of a decision for the subscription, and for people.
func (b *batch) consequences(h *head, sub *subscription, l *live, d *sender.Decision) error {
	if d.Disable != "" {
		if disabled, err := b.disable(h, sub, d.Disable); err != nil {
			return err
		} else if !disabled {
			d.Disable = ""
		}
	}
	for _, n := range rules.Notices(d, sub.Subscriber, sub.Subscription) {
		var event string
		switch err := b.row(selectEventID, l.event).Scan(&event); {
		case err == nil:
			n.Delivery = deliveryID(event, l.subscription)
		case !errors.Is(err, sql.ErrNoRows): // if the event is not there any more, nor is the delivery
			return err
		}
		if err := b.notify(n); err != nil {
			return err
		}
	}
	return nil
}

const insertNotice = `INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, notify_due)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`

// notify stores a notice, and publishes the event that is made of it.
func (b *batch) notify(n sender.Notice) error {
	n = rules.Stamped(n, b.now.time())
	err := b.execs(insertNotice, n.ID, string(n.Kind), n.Subscriber, n.Subscription, n.Delivery, n.Replay, n.Detail, n.Percent, momentOf(n.CreatedAt))
	if err != nil {
		return err
	}
	b.out.Notices = append(b.out.Notices, n)
	draft, ok := rules.Announced(b.Announce, n)
	if !ok {
		return nil
	}
	if draft.Subscriber != "" {
		if _, err := b.subscriberNo(draft.Subscriber); errors.Is(err, sender.ErrNotFound) {
			return nil // nobody is registered who could get it
		} else if err != nil {
			return err
		}
	}
	_, err = b.publish([]sender.Draft{draft})
	return err
}
