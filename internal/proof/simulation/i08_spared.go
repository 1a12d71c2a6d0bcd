package simulation

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// I8 for an attempt whose idle connection was being closed: it is made again after
// about a second, and does not count for its endpoint's health. No two attempts in a
// row of a schedule are spared like that.

const (
	leastSpared = 800 * time.Millisecond
	mostSpared  = 2 * time.Second
)

// ofIdle are the results that a real transport would return.
func (w *world) ofIdle(results []dispatch.Result) []dispatch.Result {
	results = slices.Clone(results)
	for i := range results {
		r := &results[i]
		if p := w.byKey[r.Key].posts[r.Number]; p != nil && p.closedIdle && r.Class == sender.ClassReset {
			r.ClosedIdle = true
		}
	}
	return results
}

func (w *world) checkSpared(d *delivery, r *dispatch.Result, dec *dispatch.Decision) {
	should := r.ClosedIdle && !d.spared
	switch {
	case d.mayCancel: // the policy's other decision does not count
		return
	case r.ClosedIdle && d.spared:
		w.counts["not spared again"]++
	case should:
		w.counts["spared"]++
	}
	d.spared = dec.Spared
	switch due := dec.Due.Sub(w.now); {
	case dec.Spared != should:
		w.violated("I8", "attempt %d of %s is spared: %v, and should be: %v", r.Number, d.name, dec.Spared, should)
	case !dec.Spared:
	case dec.Status != sender.StatusAwaitingRetry && !w.overtaken(d.event, d.sub):
		w.violated("I8", "attempt %d of %s is spared, and it is %s", r.Number, d.name, dec.Status)
	case due < leastSpared || due > mostSpared:
		w.violated("I8", "attempt %d of %s is spared, and the next one is due in %v", r.Number, d.name, due)
	case dec.Health != d.health:
		w.violated("I8", "attempt %d of %s is spared, and makes %+v of its subscription's %+v", r.Number, d.name, dec.Health, d.health)
	case len(dec.Notices) > 0 || dec.Disable != "":
		w.violated("I8", "attempt %d of %s is spared, and told of", r.Number, d.name)
	}
}

// checkToldSpared checks a claim against the decision before it.
func (w *world) checkToldSpared(d *delivery, c *dispatch.Claimed) {
	if c.Spared != d.spared && !d.mayCancel {
		w.violated("I8", "%s is claimed as spared: %v, and it was: %v", d.name, c.Spared, d.spared)
	}
}
