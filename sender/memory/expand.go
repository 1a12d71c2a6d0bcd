package memory

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/fanout"
	"github.com/surehook/surehook/sender/rules"
)

// expand makes the deliveries of new events. It compares each event with each
// subscription that is older than it.
func (tx *Tx) expand(p dispatch.ExpandParams, now time.Time) (x dispatch.Expanded) {
	s := tx.store
	plan := fanout.New(p)
	var found []*event
	events := p.Events + min(s.waiting, fanout.Waiting)
	for _, e := range s.events[s.expanding:] {
		if e.expanded {
			continue
		}
		if len(found) == events {
			plan.More = true
			break
		}
		count, whole := s.countMatches(e, plan.Look())
		if full, _ := plan.Add(&fanout.Candidate{Count: count, All: whole, Object: func() (sender.Object, error) { return e.info.Object, nil }}); full {
			break
		}
		found = append(found, e)
	}
	plan.Share()
	s.waiting = plan.Waiting // a hint
	for _, m := range plan.Makes {
		n, whole := tx.expandOne(found[m.At], m.Most, p.Convert, now)
		x.Deliveries += n
		if whole {
			x.Events++
		}
	}
	at := s.expanding
	for at < len(s.events) && s.events[at].expanded {
		at++
	}
	set(tx, &s.expanding, at)
	x.More = plan.More
	return x
}

// countMatches counts the subscriptions that are still to be asked whether they want an event,
// up to a number, and tells whether these are all.
func (s *Store) countMatches(e *event, most int) (n int, whole bool) {
	if e.redacted {
		return 0, true
	}
	for _, sub := range s.subscriptions[e.comparedTo:] {
		if sub.tx > e.tx {
			break // it and all that follow are younger than the event
		}
		if sub.gets(e) {
			if n++; n == most {
				return n, false
			}
		}
	}
	return n, true
}

// expandOne makes further deliveries of an event: it asks a limited number of subscriptions.
func (tx *Tx) expandOne(e *event, most int, convert sender.Convert, now time.Time) (made int, whole bool) {
	subscriptions := tx.store.subscriptions
	content := rules.Content{Type: e.info.Type, Body: e.body, Convert: convert}
	asked, at := 0, e.comparedTo
	for ; at < len(subscriptions); at++ {
		sub := subscriptions[at]
		if e.redacted || sub.tx > e.tx {
			break
		}
		if !sub.gets(e) {
			continue
		}
		if asked == most {
			set(tx, &e.comparedTo, at)
			return made, false
		}
		asked++
		if content.Wants(rules.AskedBy(sub.Filter, &sub.Settings), e.to.subscription != "") {
			made++
			tx.make(e, sub, now)
		}
	}
	set(tx, &e.comparedTo, at)
	set(tx, &e.expanded, true)
	return made, true
}

// make makes the delivery of an event to a subscription, live or skipped.
func (tx *Tx) make(e *event, sub *subscription, now time.Time) {
	turn := sub.turnOf(e, now)
	d := tx.deliver(e, sub)
	tx.countHour(now, sub.no, func(r *history.SubscriptionRollup) { r.Deliveries++ })
	if sub.skips(e) {
		tx.end(d, sender.StatusCancelled)
	} else {
		tx.enter(d, &live{due: now, turn: turn})
	}
}

// expandedFor tells whether a subscription has got all its deliveries of an event.
func (e *event) expandedFor(sub *subscription) bool {
	return e.expanded || sub.no <= int64(e.comparedTo)
}

// turnOf returns the turn of a delivery that is made now. It goes before deliveries of
// later events that were never claimed.
func (sub *subscription) turnOf(e *event, now time.Time) time.Time {
	turn := now
	if n := len(sub.deliveries); n == 0 || sub.deliveries[n-1].event.no < e.no {
		return turn
	}
	for _, d := range sub.live.items {
		if d.event.no > e.no && d.live.number == 0 && !d.live.returned && d.live.position().Before(turn) {
			turn = d.live.position()
		}
	}
	return turn
}

// deliver makes the delivery of an event to a subscription. The caller then makes it
// live, or ends it.
func (tx *Tx) deliver(e *event, sub *subscription) *delivery {
	d := &delivery{event: e, sub: sub}
	setKey(tx, tx.store.deliveries, d.key(), d)
	set(tx, &e.deliveries, append(e.deliveries, d))
	n := len(sub.deliveries)
	for n > 0 && sub.deliveries[n-1].event.no > e.no { // of a large event
		n--
	}
	if n == len(sub.deliveries) {
		set(tx, &sub.deliveries, append(sub.deliveries, d))
	} else {
		set(tx, &sub.deliveries, slices.Insert(slices.Clone(sub.deliveries), n, d))
	}
	return d
}
