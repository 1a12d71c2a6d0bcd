package simulation

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// Beside the invariants: a delivery that is forgotten has ended, is past its time, and
// does not come back.

// drawRetention makes half of the seeds forget ended deliveries as soon as they may.
func (w *world) drawRetention(horizon time.Duration) sender.Retention {
	const long = 400 * 24 * time.Hour
	if w.cfg.NoFaults || w.rand.IntN(2) == 0 {
		return sender.Retention{Delivered: long, Events: long, Rollups: long}
	}
	delivered := horizon + w.between(time.Second, 24*time.Hour)
	return sender.Retention{
		Reach: horizon, Delivered: delivered, Events: delivered + w.between(time.Second, 24*time.Hour), DeadLetters: -1, Rollups: long, Objects: 24 * time.Hour,
	}
}

// forgotten is called when a delivery no longer exists.
func (w *world) forgotten(d *delivery) {
	if d.status == sender.StatusDeadLettered && d.replayable && w.overtaken(d.event, d.sub) { // a replay came to it
		d.status = sender.StatusSuperseded
	}
	last := d.event.created
	if !d.attemptAt.IsZero() {
		last = d.attemptAt
	}
	switch age, keep := w.now.Sub(last), w.config.Retention.Delivered; {
	case d.live && !d.mayCancel && !w.overtaken(d.event, d.sub) && !w.expires(d.event, d.sub), d.leased != nil, d.status == sender.StatusDeadLettered:
		w.violated("I1", "%s is there no more, and was %s", d.name, d.status)
	case age < keep:
		w.violated("retention", "%s is there no more after %v, and is to be kept for %v", d.name, age, keep)
	}
	if d.live { // it has ended since it was looked at
		if d.status, d.live = sender.StatusCancelled, false; !d.mayCancel {
			d.status = sender.StatusSuperseded
		}
	}
	d.gone = true
	w.counts["forgotten"]++
	d.say("is forgotten")
}
