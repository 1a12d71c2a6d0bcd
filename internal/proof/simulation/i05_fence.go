package simulation

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// I5: a result that arrives after its lease was lost changes nothing, and nobody loses a
// lease before its end.

// checkFence is called when a result was handed over. lost is the store's answer.
func (w *world) checkFence(d *delivery, token int64, lost bool) {
	holds := d.leased != nil && d.leased.token == token
	if holds == lost {
		w.violated("I5", "a result of %s under the token %d was taken: %v; %v", d.name, token, !lost, d.leased)
	}
}

// checkLeaseEnded is called when an attempt was found lost.
func (w *world) checkLeaseEnded(d *delivery) {
	switch {
	case d.leased == nil:
		w.violated("I5", "an attempt of %s was found lost, and there was none", d.name)
	case d.leased.until.After(w.now):
		w.violated("I5", "the attempt of %s was found lost before its lease has ended, at %v", d.name, d.leased.until.Sub(begins))
	}
}

// checkClaim is called when a delivery was given out.
func (w *world) checkClaim(d *delivery, c *dispatch.Claimed) {
	if d.leased != nil {
		w.violated("I5", "%s is claimed while its attempt %d is leased until %v", d.name, d.leased.number, d.leased.until.Sub(begins))
	}
	if d.gone {
		w.violated("I6", "%s is claimed, and was forgotten", d.name)
	}
	if !d.live && !d.redeliver && !d.replayable {
		w.violated("I6", "%s is claimed, and is %s", d.name, d.status)
	}
	if c.Number != len(d.taken)+1 {
		w.violated("I7", "%s is claimed for attempt %d after %d", d.name, c.Number, len(d.taken))
	}
	if d.sub.status != sender.SubscriptionActive {
		w.violated("I8", "%s is claimed, and its subscription is %s", d.name, d.sub.status)
	}
}
