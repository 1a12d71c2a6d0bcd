package soak

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// judge checks one delivery of an event against a copy of the records that was made
// before, and returns whether it has ended.
func (c *cycle) judge(ctx context.Context, of, before *event, s *slot, id string, final bool) (_ *sender.Delivery, ended bool, err error) {
	d, err := c.history.Delivery(ctx, id)
	if err != nil {
		return nil, false, err
	}
	e := c.w.snapshot(of)
	c.w.count("deliveries checked")
	c.order(&e, s, &d)
	if !over(&d) {
		if final {
			c.w.add("I1", "the delivery of %s has not ended: it is %s", e.describe(s.name), d.Status)
		}
		return &d, false, nil
	}
	highest := before.highest(s.name)
	// A delivery that reads as cancelled, or as delivered because it was before and was then
	// cancelled while it was sent again, may have an attempt whose process was lost. The
	// sweep records it.
	cancelled := d.Status == sender.StatusCancelled || d.Status == sender.StatusDelivered && s.cancelled(&d, c.cfg.lease())
	if cancelled && highest > len(d.Attempts) && !final {
		return &d, false, nil
	}
	if highest > len(d.Attempts) {
		c.w.add("I3", "%d attempts are on record of %s", len(d.Attempts), before.describe(s.name))
	}
	c.wire(&e, s, &d)
	if d.Status == sender.StatusCancelled && !s.cancelled(&d, c.cfg.lease()) {
		c.w.add("I1", "the delivery of %s was cancelled, which nobody asked for: made %s, %d attempts, parts were left behind %s", e.describe(s.name),
			d.CreatedAt.Format("15:04:05.000"), len(d.Attempts), s.sheared())
	}
	return &d, true, nil
}

// over tells whether a delivery has ended, and is not being sent again.
func over(d *sender.Delivery) bool {
	switch d.Status {
	case sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusCancelled:
		return !d.InFlight && d.NextAttemptAt.IsZero()
	default:
		return false
	}
}

// order checks that a delivery's record is consistent in itself.
func (c *cycle) order(e *event, s *slot, d *sender.Delivery) {
	told := e.told[d.Subscription]
	for i := range d.Attempts {
		a := &d.Attempts[i]
		if a.Number != i+1 {
			c.w.add("I7", "attempt %d of %s has the number %d", i+1, e.describe(s.name), a.Number)
			return
		}
		c.w.search("an attempt's record", []byte(a.Error))
		if i == 0 {
			continue
		}
		before, begun := &d.Attempts[i-1], c.w.begun(d.Event.ID, d.Subscription, a)
		acted := func(list *[]span) bool { return s.acted(list, before.StartedAt, begun) }
		redelivered := slices.ContainsFunc(e.again, func(r span) bool {
			return r.what == d.Subscription && r.overlaps(before.StartedAt, begun)
		})
		again := redelivered || acted(&s.replays)
		is := sender.StatusDeadLettered
		if before.Class == sender.ClassNone || slices.ContainsFunc(d.Attempts[:i], succeeded) {
			is = sender.StatusDelivered
		}
		if (before.Class == sender.ClassNone || told != nil && told.end == before.Number) && !redelivered && !s.replayed(is, before.StartedAt, begun) {
			c.w.add("I6", "the delivery of %s ended with attempt %d, and was attempted again", e.describe(s.name), before.Number)
		}
		if early := before.NextAttemptAt.Sub(a.StartedAt); early > time.Millisecond && !again && !acted(&s.resumes) {
			c.w.add("I8", "attempt %d of %s began %v before it was due", a.Number, e.describe(s.name), early)
		}
	}
	if told == nil {
		return
	}
	for _, r := range told.lost {
		if r.Number > len(d.Attempts) {
			continue
		}
		// If the answer to recording it was lost, it was recorded the first time.
		if a := d.Attempts[r.Number-1]; a.Class != sender.ClassInterrupted && (a.Class != r.Class || a.StatusCode != r.StatusCode) {
			c.w.add("I5", "a late result of attempt %d of %s changed its record to %q", r.Number, e.describe(s.name), a.Class)
		}
	}
}

// wire checks the record of a delivery that has ended against its posts.
func (c *cycle) wire(e *event, s *slot, d *sender.Delivery) {
	posts := map[int]*post{}
	if w := e.wires[s.name]; w != nil {
		for _, p := range w.posts {
			posts[p.number] = p
		}
	}
	for i, a := range d.Attempts {
		p := posts[a.Number]
		if a.StatusCode != 0 && (p == nil || p.status != a.StatusCode) {
			c.w.add("I3", "attempt %d of %s is recorded as answered with %d, which it was not", a.Number, e.describe(s.name), a.StatusCode)
		}
		if p != nil {
			// The timestamp tells only whole seconds.
			if old := a.StartedAt.Sub(time.Unix(p.signed+1, 0)); old > time.Millisecond {
				c.w.add("I4", "attempt %d of %s has a timestamp from %v before it began", a.Number, e.describe(s.name), old)
			}
		}
		if a.Class == sender.ClassNone && (p == nil || !p.accepted) {
			c.w.add("I11", "attempt %d of %s is recorded as a success, and was not answered with 2xx", a.Number, e.describe(s.name))
		}
		if i == 0 {
			continue
		}
		last := posts[a.Number-1]
		if p == nil || last == nil || last.retryAfter == 0 || d.Attempts[i-1].StatusCode != 429 {
			continue
		}
		if early := last.answered.Add(last.retryAfter).Sub(p.at); early > time.Millisecond && !c.lastChance(d.Attempts[:i]) &&
			!s.acted(&s.resumes, last.at, p.at) && !s.acted(&s.replays, last.at, p.at) &&
			!slices.ContainsFunc(e.again, func(r span) bool { return r.what == d.Subscription && r.overlaps(last.at, p.at) }) {
			c.w.add("I8", "attempt %d of %s came %v before its Retry-After", a.Number, e.describe(s.name), early)
		}
	}
	ok := slices.ContainsFunc(d.Attempts, succeeded)
	if ok != (d.Status == sender.StatusDelivered) {
		c.w.add("I1", "the delivery of %s is %s, and that an attempt of it succeeded is %v", e.describe(s.name), d.Status, ok)
	}
}

func succeeded(a sender.Attempt) bool { return a.Class == sender.ClassNone }

// lastChance tells whether the attempt after these was due at the horizon: a delay that
// would cross the horizon is shortened to it. The horizon counts from the claim of a
// schedule's first attempt, which can begin up to a lease later, and a redelivery
// begins the schedule anew. The horizon stands still for a spared attempt, as a reset
// may have been.
func (c *cycle) lastChance(attempts []sender.Attempt) bool {
	due := attempts[len(attempts)-1].NextAttemptAt
	stood := time.Duration(0)
	for _, a := range slices.Backward(attempts) {
		if a.Class == sender.ClassReset && !a.NextAttemptAt.IsZero() {
			stood += a.NextAttemptAt.Sub(a.StartedAt)
		}
		if short := a.StartedAt.Add(c.cfg.horizon()).Sub(due); short > -time.Millisecond-stood && short < c.cfg.lease() {
			return true
		}
	}
	return false
}
