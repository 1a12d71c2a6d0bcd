package memory

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// delivery is live while its row is not nil. What it is otherwise follows from
// ended: dead-lettered, cancelled, or, if it is empty, delivered.
type delivery struct {
	event    *event
	sub      *subscription
	live     *live
	ended    sender.Status
	attempts []sender.Attempt
	at       int // see member
}

// live is what a delivery that is not at its end remembers. Rows are never
// changed, but replaced by setLive.
type live struct {
	due    time.Time // while it is leased: the end of the lease
	number int       // of the attempt that was claimed last; while it is leased: the token
	tries  int       // attempts of the present schedule
	first  time.Time // claim of the first of them; zero: none
	leased time.Time // claim of the attempt in hand; zero: none
	single bool
}

func (d *delivery) place() *int { return &d.at }

func (d *delivery) before(other *delivery) bool {
	if !d.live.due.Equal(other.live.due) {
		return d.live.due.Before(other.live.due)
	}
	return d.event.no < other.event.no
}

func (d *delivery) key() sender.DeliveryKey {
	return sender.DeliveryKey{Event: d.event.no, Subscription: d.sub.no}
}

func (d *delivery) status() sender.Status {
	switch {
	case d.live == nil && d.ended != "":
		return d.ended
	case d.live == nil:
		return sender.StatusDelivered
	case d.sub.deleted && d.live.single: // it was delivered before it was sent again
		return sender.StatusDelivered
	case d.sub.deleted:
		return sender.StatusCancelled
	case len(d.attempts) == 0:
		return sender.StatusPending
	}
	return sender.StatusAwaitingRetry
}

// inFlight tells whether the lease of an attempt is running.
func (l *live) inFlight(now time.Time) bool {
	return l != nil && !l.leased.IsZero() && l.due.After(now)
}

// Event ids begin with eventPrefix, deliveries' with deliveryPrefix.
const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

// id is the event's, with the subscription's number in base 36.
func (d *delivery) id() string {
	return deliveryPrefix + strings.TrimPrefix(d.event.info.ID, eventPrefix) + "_" + strconv.FormatInt(d.sub.no, 36)
}

// deliveryByID returns nil if there is none.
func (s *Store) deliveryByID(id string) *delivery {
	rest, _ := strings.CutPrefix(id, deliveryPrefix)
	cut := strings.LastIndexByte(rest, '_')
	if cut < 0 {
		return nil
	}
	e := s.eventByID[eventPrefix+rest[:cut]]
	if e == nil {
		e = s.eventByID[rest[:cut]]
	}
	no, err := strconv.ParseInt(rest[cut+1:], 36, 64)
	if e == nil || err != nil {
		return nil
	}
	d := s.deliveries[sender.DeliveryKey{Event: e.no, Subscription: no}]
	if d == nil || d.id() != id { // numbers can be written in several ways
		return nil
	}
	return d
}

// summary is a delivery without its body and attempts.
func (d *delivery) summary(now time.Time) sender.Delivery {
	out := sender.Delivery{
		ID: d.id(), Event: d.event.info, Version: d.event.version,
		Subscriber: d.sub.owner.ID, Subscription: d.sub.ID, URL: d.sub.URL,
		Status: d.status(), CreatedAt: d.event.created,
		AttemptCount: len(d.attempts), InFlight: d.live.inFlight(now),
	}
	if d.live != nil && !d.sub.deleted && !out.InFlight {
		out.NextAttemptAt = d.live.due
	}
	if n := len(d.attempts); n > 0 {
		out.LastErrorClass = d.attempts[n-1].Class
	}
	return out
}

// full is a delivery with everything.
func (d *delivery) full(now time.Time) sender.Delivery {
	out := d.summary(now)
	out.Body = bytes.Clone(d.event.body)
	out.Attempts = slices.Clone(d.attempts)
	for i := range out.Attempts {
		out.Attempts[i].Snippet = bytes.Clone(out.Attempts[i].Snippet)
	}
	return out
}

// target is where a delivery goes. Those of one subscription share what targets
// has for it.
func (d *delivery) target(targets map[int64]*sender.Target) *sender.Target {
	t := targets[d.sub.no]
	if t == nil {
		t = &sender.Target{
			Subscription: d.sub.ID, SubscriptionNo: d.sub.no, URL: d.sub.URL,
			Subscriber: d.sub.owner.ID, SubscriberNumber: d.sub.owner.no,
			KeyringVersion: d.sub.owner.keyring.Version, Lane: d.sub.health.Lane,
		}
		targets[d.sub.no] = t
	}
	return t
}
