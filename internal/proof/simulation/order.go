package simulation

import (
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// ordering is what was of the order of a subscription, which changes at any time.
type ordering struct {
	orderSince time.Time // it has the present order; zero: always
	linedSince time.Time // it has an order, or none
	heldSince  time.Time // its dead letters hold back others, or do not
	wasLatest  bool      // some time
	wasLined   bool
	wasHeld    bool // by dead letters
}

// nearReach is how far back a PassOver reaches without force.
const nearReach = 10 * time.Minute

// drawOrder draws the order of a subscription, and how long one version holds back others.
func (w *world) drawOrder(s *sender.Settings) {
	s.Order, s.HoldFor, s.HoldDead = sender.OrderRelaxed, 0, false
	switch w.rand.IntN(6) {
	case 0, 1:
		s.Order, s.HoldDead = sender.OrderObject, w.rand.IntN(2) == 0
		if w.rand.IntN(3) == 0 {
			s.HoldFor = w.between(time.Minute, w.config.Policy.Backoff.Horizon/4)
		}
	case 2, 3:
		s.Order = sender.OrderLatest
	}
}

// reorder gives a subscription another order, whatever of it is in flight or waits.
func (w *world) reorder(s *subscription) {
	if d := w.oneOf(func(d *delivery) bool { return d.leased != nil }); d != nil && w.rand.IntN(2) == 0 {
		s = d.sub
	}
	settings := s.settings
	w.drawOrder(&settings)
	w.order(s, settings)
}

// noteOrder notes which orders a subscription has had.
func (s *subscription) noteOrder() {
	s.wasLatest = s.wasLatest || s.settings.Order == sender.OrderLatest
	s.wasLined = s.wasLined || s.settings.Order != sender.OrderRelaxed
	s.wasHeld = s.wasHeld || s.settings.HoldDead
}

func (w *world) order(s *subscription, settings sender.Settings) {
	was := s.settings
	_, err := w.registry.Update(w.ctx, s.id, sender.SubscriptionChange{Settings: &settings})
	w.fail(err)
	w.say("%s has the order %q, and its dead letters hold back others: %v", s.name, settings.Order, settings.HoldDead)
	s.settings = settings
	s.noteOrder()
	if settings.Order != was.Order {
		s.orderSince = w.now
		w.countInFlight(s)
	}
	if settings.Order == sender.OrderRelaxed || was.Order == sender.OrderRelaxed {
		s.linedSince = w.now
	}
	if settings.HoldDead != was.HoldDead {
		s.heldSince = w.now
	}
}

// flood lets more versions of an object wait in a line than a newer one ends in one step, and
// then brings the order to the latest.
func (w *world) flood(s *subscription) {
	settings := s.settings
	settings.Order, settings.HoldFor, settings.HoldDead = sender.OrderObject, 0, false
	w.order(s, settings)
	w.hold(s, sender.SubscriptionPaused, func() error { return w.registry.Pause(w.ctx, s.id) })
	for range rules.SupersedeMost + 100 {
		w.producer.version("flood", s)
	}
	w.hint()
	w.at(w.between(time.Second, time.Minute), func() {
		if got, err := w.registry.Subscription(w.ctx, s.id); err != nil || got.Backlog <= rules.SupersedeMost {
			w.fail(err)
			return // something else came between
		}
		w.counts["more superseded than one step ends"]++
		settings := s.settings
		settings.Order, settings.HoldFor, settings.HoldDead = sender.OrderLatest, 0, false
		w.order(s, settings)
		w.producer.version("flood", s)
		w.resume(s, sender.Resume{Force: true})
		w.hint()
	})
}

func (w *world) countInFlight(s *subscription) {
	for _, d := range w.deliveries {
		if d.sub == s && d.leased != nil && d.leased.until.After(w.now) {
			w.counts["order changed in flight"]++
		}
	}
}

// ordered tells whether the delivery of an event was made under the present order of its
// subscription, for certain: the event was committed since.
func (s *subscription) ordered(e *event) bool { return !e.notice && e.at.After(s.orderSince) }

// lined tells whether the delivery of an event was made since its subscription has one of the
// orders in which versions wait for each other.
func (s *subscription) lined(e *event) bool {
	return s.settings.Order != sender.OrderRelaxed && !e.notice && e.at.After(s.linedSince)
}

// holdsBack tells whether a delivery that was just looked at is a dead letter behind which
// later versions wait.
func (s *subscription) holdsBack(d *delivery) bool {
	return d.status == sender.StatusDeadLettered && !d.passed && s.settings.HoldDead && s.lined(d.event) && d.event.at.After(s.heldSince)
}

// oneOf draws one of some deliveries; nil: there is none.
func (w *world) oneOf(some func(d *delivery) bool) (one *delivery) {
	n := 0
	for _, d := range w.deliveries {
		if !d.gone && some(d) {
			if n++; w.rand.IntN(n) == 0 {
				one = d
			}
		}
	}
	return one
}

// passOver lets go on what a dead letter holds back, or tries to where none does.
func (w *world) passOver() {
	d := w.oneOf(func(d *delivery) bool { return d.sub.holdsBack(d) })
	if d == nil {
		d = w.oneOf(func(*delivery) bool { return true })
	}
	if d == nil {
		return
	}
	w.look(d)
	if d.gone {
		return
	}
	s := d.sub
	oldest := w.publishedBehind(d)
	tooOld := !oldest.IsZero() && oldest.Before(w.now.Add(-nearReach))
	holds, err := s.holdsBack(d), w.near.PassOver(w.ctx, d.id)
	d.say("is passed over, too old: %v, %v", tooOld, err == nil)
	switch {
	case errors.Is(err, sender.ErrRetention):
		if !tooOld {
			w.violated("I10", "%s is not passed over, since what is behind is too old, which was published at %v", d.name, oldest.Sub(begins))
		}
		w.counts["passed over by force"]++
		err = w.near.PassOverForced(w.ctx, d.id)
	case err == nil && tooOld && holds:
		w.violated("I10", "%s is passed over, and receivers may have forgotten what is behind, which was published at %v", d.name, oldest.Sub(begins))
	}
	switch {
	case errors.Is(err, sender.ErrStatus):
		if holds {
			w.violated("I15", "%s is not passed over, and holds back others", d.name)
		}
	case err != nil:
		w.fail(err)
	case d.status != sender.StatusDeadLettered:
		w.violated("I15", "%s is passed over, and is %s", d.name, d.status)
	default:
		w.counts["passed over"]++
		d.passed = true
	}
}

// publishedBehind is when the event was published of the version that is the next to go on
// behind a delivery; zero: there is none.
func (w *world) publishedBehind(d *delivery) time.Time {
	for _, e := range w.newer(d.event, d.sub) {
		if next := w.unseen(e, d.sub); next != nil && !terminal(next.Status) {
			return e.created
		}
	}
	return time.Time{}
}
