package rules

import (
	"cmp"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Notices returns the notices of a settled decision that are to be stored, in their order.
// Each tells of something that has happened. NoticeDisabled is left out unless Disable is
// still set: a store that could not disable the subscription clears Disable before.
// NoticeDeadLettered is left out unless the Status is StatusDeadLettered.
//
// subscriber and subscription are the ids of the subscription's owner and of the
// subscription. The owner is the addressee of a notice that names nobody else. The store
// sets Delivery.
func Notices(d *dispatch.Decision, subscriber, subscription string) (stored []sender.Notice) {
	for _, n := range d.Notices {
		switch {
		case n.Kind == sender.NoticeDisabled && d.Disable == "", n.Kind == sender.NoticeDeadLettered && d.Status != sender.StatusDeadLettered:
			continue
		}
		n.Subscriber, n.Subscription = cmp.Or(n.Subscriber, subscriber), subscription
		stored = append(stored, n)
	}
	return stored
}

// Stamped is a notice as it is stored at a time: with an id and with that time, unless it
// has them.
func Stamped(n sender.Notice, now time.Time) sender.Notice {
	if n.CreatedAt.IsZero() {
		n.CreatedAt = now
	}
	if n.ID == "" {
		n.ID = newid.New("ntc_", n.CreatedAt)
	}
	return n
}

// Announced is the event that is published with a notice, if there is one. announce is a
// Batch's, or nil. The event is marked as one that tells of a notice: a failure to deliver
// it makes no further notice, which could go on without end.
func Announced(announce func(sender.Notice) (sender.Draft, bool), n sender.Notice) (d sender.Draft, ok bool) {
	if announce == nil {
		return d, false
	}
	d, ok = announce(n)
	d.Notice = true
	return d, ok
}
