package simulation

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// I8: no POST before it is due, nor before its clamped Retry-After.

// mostRetryAfter bounds a Retry-After.
const mostRetryAfter = 24 * time.Hour

// keepWaiting notes how long an endpoint asks to wait with a delivery, and how long the
// policy waits at least.
func (w *world) keepWaiting(d *delivery, r *dispatch.Result, dec *dispatch.Decision) {
	d.notBefore = time.Time{}
	if r.Class == sender.ClassNone || d.firstLeast.IsZero() {
		return
	}
	if dec.Spared {
		d.notBefore = w.now.Add(leastSpared)
		return
	}
	least := d.sub.leastDelay()
	from := w.now
	if p := d.posts[r.Number]; r.StatusCode != 0 && p != nil && p.retryAfter > 0 {
		if asked := min(p.retryAfter, mostRetryAfter); p.answeredAt.Add(asked).After(from.Add(least)) {
			from, least = p.answeredAt, asked
			w.counts["Retry-After"]++
		}
	}
	d.notBefore = minTime(d.firstLeast.Add(d.sub.horizon()), from.Add(least)).Truncate(time.Microsecond)
}

func (w *world) checkDue(d *delivery, what string) {
	if due := d.due; w.now.Before(due) {
		w.violated("I8", "%s is %s before it is due, at %v", d.name, what, due.Sub(begins))
	}
	if at := d.notBefore; w.now.Before(at) {
		w.violated("I8", "%s is %s before it was asked for, at %v", d.name, what, at.Sub(begins))
	}
}

// hurry notes that a delivery must be sent at once.
func (d *delivery) hurry() {
	d.due, d.notBefore, d.spared = time.Time{}, time.Time{}, false
	d.firstMost = time.Time{} // its schedule begins anew, if it was not in flight
}
