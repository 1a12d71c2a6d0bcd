package simulation

import (
	"cmp"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// I1: a committed publish is never lost. Each delivery ends delivered, dead-lettered,
// cancelled or, under the latest order, superseded, or it is still pending, awaiting retry
// or held. A delivery counts as delivered only if it was answered with 2xx. It is given up
// at its horizon, neither earlier nor later. It is cancelled or held only by the owner's
// will.

// checkDecision checks a decision against the rules for the end of a schedule.
func (w *world) checkDecision(d *delivery, r *dispatch.Result, dec *dispatch.Decision) {
	horizon := d.sub.horizon()
	d.stood += dec.Stands
	switch dec.Status {
	case sender.StatusDelivered:
		if r.Class == sender.ClassNone {
			if p := d.posts[r.Number]; p == nil || !p.acked {
				w.violated("I1", "%s counts as delivered by attempt %d, which was not answered with 2xx", d.name, r.Number)
			}
			d.delivered = true
		}
		if age := w.now.Sub(d.firstLeast); r.Class == sender.ClassInterrupted && age < horizon && !w.overtaken(d.event, d.sub) {
			w.violated("I1", "%s was sent again, and that ends after %v with an attempt that was lost", d.name, age)
		}
		if !d.delivered {
			w.violated("I1", "%s counts as delivered, and never was", d.name)
		}
	case sender.StatusDeadLettered:
		if age := w.now.Sub(d.firstLeast); age < horizon {
			w.violated("I1", "%s is given up after %v, before its horizon, %v", d.name, age, horizon)
		}
	case sender.StatusAwaitingRetry:
		if d.single && !dec.Uncounted && r.Class != sender.ClassInterrupted {
			w.violated("I6", "%s was delivered, and awaits a retry after it was sent again", d.name)
		}
		// While a schedule stands still, its age does not matter.
		if age := w.now.Sub(d.firstMost) - d.stood; !d.firstMost.IsZero() && age >= horizon && !dec.Spared && dec.Stands == 0 && !d.sub.stops(r) {
			w.violated("I1", "%s is tried on after %v, past its horizon, %v", d.name, age, horizon)
		}
		if next := dec.Due.Sub(d.firstMost) - d.stood; !d.firstMost.IsZero() && next > horizon+time.Microsecond && !dec.Spared && dec.Stands == 0 && !d.sub.stops(r) {
			w.violated("I1", "%s is tried again %v after its first attempt, past its horizon, %v", d.name, next, horizon)
		}
		if r.Class == sender.ClassNone {
			w.violated("I1", "%s awaits a retry after an attempt that succeeded", d.name)
		}
	}
}

// checkStatus checks the status of a delivery against that of its subscription.
func (w *world) checkStatus(d *delivery, got *sender.Delivery) {
	holds := d.sub.status == sender.SubscriptionPaused || d.sub.status == sender.SubscriptionDisabled
	switch {
	case got.Status == sender.StatusCancelled && !d.mayCancel:
		w.violated("I1", "%s is cancelled, and nobody has asked for it", d.name)
	case !terminal(got.Status) && holds != (got.Status == sender.StatusHeld):
		w.violated("I1", "%s is %s, and its subscription is %s", d.name, got.Status, d.sub.status)
	case !terminal(got.Status) && !holds && !got.InFlight && got.NextAttemptAt.IsZero() && !d.sub.wasLined:
		w.violated("I1", "%s is %s, and nothing is planned", d.name, got.Status)
	}
}

// expires tells whether a delivery may end without an attempt: a dead letter has held it back
// for longer than receivers remember events.
func (w *world) expires(e *event, s *subscription) bool {
	return s.wasHeld && w.now.Sub(e.created) > cmp.Or(w.config.Retention.Reach, dedup.DefaultReach)
}

// expired tells whether a delivery that was never claimed has ended so. It may be forgotten.
func (w *world) expired(e *event, s *subscription) bool {
	if !w.expires(e, s) {
		return false
	}
	made := w.unseen(e, s)
	return made == nil || terminal(made.Status)
}

// sendExpired sends again what has ended so, of what was never claimed.
func (w *world) sendExpired() {
	for _, e := range w.events {
		for _, s := range w.subs {
			if !s.gets(e) || !w.expires(e, s) {
				continue
			}
			if made := w.unseen(e, s); made != nil && made.Status == sender.StatusDeadLettered && made.AttemptCount == 0 {
				w.fail(w.history.Redeliver(w.ctx, made.ID))
				w.counts["ended behind a dead letter"]++
			}
		}
	}
}

// missing returns the deliveries that should exist and do not.
func (w *world) missing() (names []string) {
	type key struct {
		e *event
		s *subscription
	}
	there := map[key]bool{}
	for _, d := range w.deliveries {
		there[key{d.event, d.sub}] = true
	}
	for _, e := range w.events {
		for _, s := range w.subs {
			if s.gets(e) && !there[key{e, s}] {
				if name := e.name + "→" + s.name; !w.skipped(e, s) && !w.supersededUnseen(e, s) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
