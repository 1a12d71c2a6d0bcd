package sqlite

import (
	"errors"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
)

const insertNotice = `INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notified_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`

// notify stores a notice, and publishes the event that is made of it.
func (b *batch) notify(n sender.Notice) error {
	n.CreatedAt = timeOf(b.now)
	n.ID = newid.New("ntc_", n.CreatedAt)
	err := b.execs(insertNotice, n.ID, string(n.Kind), n.Subscriber, n.Subscription, n.Delivery, n.Replay, n.Detail, n.Percent, b.now)
	if err != nil {
		return err
	}
	b.out.Notices = append(b.out.Notices, n)
	if b.Announce == nil {
		return nil
	}
	draft, ok := b.Announce(n)
	if !ok {
		return nil
	}
	if _, err := b.subscriberNo(draft.Subscriber); errors.Is(err, sender.ErrNotFound) && draft.Subscriber != "" {
		return nil // nobody is registered who could get it
	}
	draft.Notice = true
	_, err = b.publish(&draft, b.now)
	return err
}
