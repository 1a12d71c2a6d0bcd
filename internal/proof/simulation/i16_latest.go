package simulation

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// I16: under the latest order no attempt of a version is claimed when a newer version of its
// object was made for its subscription and has not ended, nor beside an attempt of another
// version. A version ends as superseded only if there is a newer one, and is not posted again
// unless somebody sends it again. In the end the newest version of each object is delivered.
// This is of deliveries that were made since the subscription has an order, and of newer ones
// that were made since that is the latest.

// latest tells whether a subscription wants the newest version of an event's object alone.
func (s *subscription) latest(e *event) bool {
	return s.settings.Order == sender.OrderLatest && !e.notice
}

// newer lists the events about the same object that a subscription gets, with higher
// versions.
func (w *world) newer(e *event, s *subscription) (newer []*event) {
	for _, other := range w.events {
		if other.object == e.object && other.version > e.version && s.mayGet(other) {
			newer = append(newer, other)
		}
	}
	return newer
}

// overtaken tells whether an event can be superseded for a subscription. The object of a
// notice has other notices too, whose versions are not known here.
func (w *world) overtaken(e *event, s *subscription) bool {
	return s.wasLatest && (e.notice || len(w.newer(e, s)) > 0)
}

// checkLatest checks a claim against the deliveries of other versions.
func (w *world) checkLatest(d *delivery) {
	if !d.sub.latest(d.event) || !d.sub.lined(d.event) {
		return
	}
	w.counts["claimed of the latest"]++
	there := map[*event]bool{}
	for _, other := range w.deliveries {
		if other.sub != d.sub || other.event.object != d.event.object || other.event.notice || other == d {
			continue
		}
		there[other.event] = true
		if !d.sub.lined(other.event) {
			continue
		}
		if l := other.leased; l != nil && l.until.After(w.now) {
			w.violated("I16", "%s is claimed while another version is in flight: %s", d.name, other.name)
		}
		if other.event.version < d.event.version || !d.sub.ordered(other.event) {
			continue
		}
		w.look(other)
		if other.live && !other.mayCancel {
			w.violated("I16", "%s is claimed, and a newer version of its object has not ended: %s is %s", d.name, other.name, other.status)
		}
	}
	for _, e := range w.newer(d.event, d.sub) {
		if there[e] || w.skipped(e, d.sub) || !d.sub.ordered(e) {
			continue
		}
		if made := w.unseen(e, d.sub); made != nil && !terminal(made.Status) {
			w.violated("I16", "%s is claimed, and a newer version of its object was made, and has not ended: %s is %s", d.name, e.name, made.Status)
		}
	}
}

// checkNeverSuperseded checks a delivery that is claimed for the first time.
func (w *world) checkNeverSuperseded(d *delivery) {
	if !d.sub.latest(d.event) || !d.sub.lined(d.event) || !d.lastAt.IsZero() || d.sub.replayed || w.expires(d.event, d.sub) {
		return
	}
	for _, other := range w.deliveries {
		if other.sub == d.sub && d.sub.ordered(other.event) && other.event.object == d.event.object && other.event.version > d.event.version && !other.event.notice {
			w.violated("I16", "%s is claimed for the first time, and must have been superseded, by %s, and nobody has sent it again", d.name, other.name)
		}
	}
}

// unseen reads the delivery of an event, which may never have been claimed; nil: there is none.
func (w *world) unseen(e *event, s *subscription) *sender.Delivery {
	page, _, err := w.history.Deliveries(w.ctx, history.DeliveryQuery{Event: e.id, Subscription: s.id})
	w.fail(err)
	if len(page) == 0 {
		return nil
	}
	return &page[0]
}

// supersededUnseen tells whether a delivery that was never claimed was superseded. It may be
// forgotten since.
func (w *world) supersededUnseen(e *event, s *subscription) bool {
	if !w.overtaken(e, s) {
		return false
	}
	made := w.unseen(e, s)
	if made == nil {
		return w.now.Sub(e.at) > w.config.Retention.Delivered
	}
	if made.AttemptCount != 0 {
		w.violated("I7", "%s was never claimed for %s, and has %d attempts", e.name, s.name, made.AttemptCount)
	}
	return made.Status == sender.StatusSuperseded
}

// checkSuperseded checks that what is superseded may be.
func (w *world) checkSuperseded(d *delivery, status sender.Status) {
	if status != sender.StatusSuperseded || status == d.status {
		return
	}
	w.counts["superseded after an attempt"]++
	switch {
	case !w.overtaken(d.event, d.sub):
		w.violated("I16", "%s is superseded, and there is no newer version", d.name)
	case d.leased != nil:
		w.violated("I16", "%s is superseded while its attempt is in flight", d.name)
	}
}

// checkNewest checks in the end that the newest version of each object has arrived.
func (w *world) checkNewest() {
	for _, s := range w.subs {
		for _, e := range w.events {
			if !s.gets(e) || !s.latest(e) || len(w.newer(e, s)) > 0 || w.skipped(e, s) {
				continue
			}
			arrived := false
			for _, d := range w.deliveries {
				arrived = arrived || d.event == e && d.sub == s && d.status == sender.StatusDelivered
			}
			if !arrived {
				w.violated("I16", "the newest version of an object is not delivered in the end: %s→%s", e.name, s.name)
			}
			w.counts["newest of an object"]++
		}
	}
}
