package simulation

import "github.com/surehook/surehook/sender"

// I15: under the order of objects no attempt is claimed before every earlier version of its
// object has ended for its subscription, and, if that wants it, is no dead letter, unless
// somebody has passed over it. This holds between processes, and whatever fails; of the
// deliveries that were made since the subscription has an order.

// checkLine checks a claim against the deliveries of earlier versions.
func (w *world) checkLine(d *delivery) {
	if d.sub.settings.Order != sender.OrderObject || !d.sub.lined(d.event) {
		return
	}
	w.counts["claimed in a line"]++
	there := map[*event]bool{}
	for _, other := range w.deliveries {
		if other.sub != d.sub || other.event.object != d.event.object || other.event.notice || other == d {
			continue
		}
		there[other.event] = true
		if !d.sub.lined(other.event) {
			continue
		}
		if other.event.version > d.event.version {
			if l := other.leased; l != nil && l.until.After(w.now) {
				w.violated("I15", "%s is claimed while a later version is in flight: %s", d.name, other.name)
			}
			continue
		}
		w.look(other) // it may have ended by a resume
		if other.live && !other.mayCancel {
			w.violated("I15", "%s is claimed before an earlier version of its object has ended: %s is %s", d.name, other.name, other.status)
		}
		if d.sub.holdsBack(other) {
			w.violated("I15", "%s is claimed behind a dead letter, which nobody has passed over: %s", d.name, other.name)
		}
	}
	for _, e := range w.events {
		if e.object == d.event.object && e.version < d.event.version && d.sub.gets(e) && d.sub.ordered(e) && !there[e] && !w.skipped(e, d.sub) && !w.expired(e, d.sub) {
			w.violated("I15", "%s is claimed before an earlier version of its object was: %s", d.name, e.name)
		}
	}
}
