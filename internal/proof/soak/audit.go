package soak

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// snapshot copies what is known of an event. Of a copy that was made before the
// library was asked, the library knows all posts; one that was made after it knows all
// that the library can have known.
func (w *witness) snapshot(e *event) event {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := *e
	s.again, s.done = slices.Clone(e.again), maps.Clone(e.done)
	s.wires, s.told = map[string]*wire{}, map[string]*told{}
	for slot, d := range e.wires {
		copied := &wire{}
		for _, p := range d.posts {
			q := *p
			copied.posts = append(copied.posts, &q)
		}
		s.wires[slot] = copied
	}
	for subscription, t := range e.told {
		s.told[subscription] = &told{lost: slices.Clone(t.lost), end: t.end}
	}
	return s
}

// audit checks all that is known of an event against what the library and the
// receivers say of it. It tells whether all its deliveries have ended, at the end of
// which they must have, and whether some are alive.
func (c *cycle) audit(ctx context.Context, of *event, final bool) (ended, alive bool, err error) {
	e := c.w.snapshot(of)
	deliveries, err := c.deliveries(ctx, e.id)
	if err != nil {
		return false, false, err
	}
	var judged []judgement
	found := map[string]bool{}
	for _, d := range deliveries {
		name := path.Base(d.URL)
		s := c.ends.slot(name)
		if s == nil {
			continue // it went long ago
		}
		if _, may := s.due(&e); e.nonce != 0 && e.outcome == committed && !may {
			c.w.add("I1", "there is a delivery of %s, which did not ask for it", e.describe(name))
		}
		found[name] = true
		if posts, known := e.done[name]; known && posts == e.highest(name) && over(&d) {
			continue
		}
		full, ends, err := c.judge(ctx, of, &e, s, d.ID, final)
		switch {
		case errors.Is(err, sender.ErrNotFound): // pruned meanwhile
		case err != nil:
			return false, false, err
		case ends:
			judged = append(judged, judgement{s, full})
		default:
			alive = true
		}
	}
	if err := c.effects(ctx, of, judged); err != nil {
		return false, false, err
	}
	return c.missing(&e, found, final) && !alive, alive, nil
}

// judgement is a delivery that has ended in order, as its record says.
type judgement struct {
	s *slot
	d *sender.Delivery
}

// missing looks for the deliveries that must be there and are not, and tells whether
// there are none. One that was never seen may have been made, have ended, and have
// been pruned since it was accepted.
func (c *cycle) missing(e *event, found map[string]bool, final bool) (none bool) {
	if e.nonce == 0 || e.outcome != committed {
		return true
	}
	none = true
	for _, s := range c.ends.all() {
		_, known := e.done[s.name]
		if must, _ := s.due(e); !must || found[s.name] || known {
			continue
		}
		none = false
		if !final {
			continue
		}
		if time.Since(e.began) < c.cfg.Reach || !e.accepted(s.name) {
			c.w.add("I1", "there is no delivery of %s (nonce %d)", e.describe(s.name), e.nonce)
			continue
		}
		c.w.count("deliveries pruned before they were checked")
	}
	return none
}

// accepted tells whether a receiver has answered 2xx.
func (e *event) accepted(slot string) bool {
	d := e.wires[slot]
	return d != nil && slices.ContainsFunc(d.posts, func(p *post) bool { return p.accepted })
}

func (c *cycle) deliveries(ctx context.Context, eventID string) (all []sender.Delivery, err error) {
	q := sender.DeliveryQuery{Event: eventID, Limit: 200}
	for {
		page, next, err := c.history.Deliveries(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		q.Cursor = next
	}
}

// judge checks one delivery of an event, of which there is a copy that was made
// before, and tells whether it has ended.
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
	// One that reads as cancelled may have had an attempt whose process was lost. It is
	// recorded when the delivery is swept.
	if d.Status == sender.StatusCancelled && highest > len(d.Attempts) && !final {
		return &d, false, nil
	}
	if highest > len(d.Attempts) {
		c.w.add("I3", "%d attempts are on record of %s", len(d.Attempts), before.describe(s.name))
	}
	c.wire(&e, s, &d)
	s.mu.Lock()
	cancelled := s.at || s.shorn
	s.mu.Unlock()
	if d.Status == sender.StatusCancelled && !cancelled {
		c.w.add("I1", "the delivery of %s was cancelled, which nobody asked for", e.describe(s.name))
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

// order checks what a delivery's record says by itself.
func (c *cycle) order(e *event, s *slot, d *sender.Delivery) {
	told := e.told[d.Subscription]
	for i, a := range d.Attempts {
		if a.Number != i+1 {
			c.w.add("I7", "attempt %d of %s has the number %d", i+1, e.describe(s.name), a.Number)
			return
		}
		c.w.search("an attempt's record", []byte(a.Error))
		if i == 0 {
			continue
		}
		before := d.Attempts[i-1]
		acted := func(list *[]span) bool { return s.acted(list, before.StartedAt, a.StartedAt) }
		again := acted(&s.replays) || slices.ContainsFunc(e.again, func(r span) bool {
			return r.what == d.Subscription && r.overlaps(before.StartedAt, a.StartedAt)
		})
		if (before.Class == sender.ClassNone || told != nil && told.end == before.Number) && !again {
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

// wire checks the record of a delivery that has ended against what was posted.
func (c *cycle) wire(e *event, s *slot, d *sender.Delivery) {
	posts := map[int]*post{}
	if w := e.wires[s.name]; w != nil {
		for _, p := range w.posts {
			posts[p.number] = p
		}
	}
	for i, a := range d.Attempts {
		p := posts[a.Number]
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
	ok := slices.ContainsFunc(d.Attempts, func(a sender.Attempt) bool { return a.Class == sender.ClassNone })
	if ok != (d.Status == sender.StatusDelivered) {
		c.w.add("I1", "the delivery of %s is %s, and that an attempt of it succeeded is %v", e.describe(s.name), d.Status, ok)
	}
}

// lastChance tells whether the attempt after these was due at the horizon, to which
// every delay is shortened that would cross it: so long after the first attempt of a
// schedule, which begins anew with a redelivery. An attempt can begin as much
// as a lease after it was claimed, from when the horizon counts.
func (c *cycle) lastChance(attempts []sender.Attempt) bool {
	due := attempts[len(attempts)-1].NextAttemptAt
	return slices.ContainsFunc(attempts, func(a sender.Attempt) bool {
		short := a.StartedAt.Add(c.cfg.horizon()).Sub(due)
		return short > -time.Millisecond && short < c.cfg.lease()
	})
}

// highest is the highest number that was posted to a slot; no two posts have the same.
func (e *event) highest(slot string) (n int) {
	if d := e.wires[slot]; d != nil {
		for _, p := range d.posts {
			n = max(n, p.number, len(d.posts))
		}
	}
	return n
}

// effects checks what the receivers' database has of an event whose deliveries have
// ended, and keeps that they were checked.
func (c *cycle) effects(ctx context.Context, of *event, ended []judgement) error {
	if len(ended) == 0 {
		return nil
	}
	e := c.w.snapshot(of)
	effects, err := column[string](ctx, c.applies.base, "SELECT scope FROM soak_effects WHERE id = $1", e.id)
	if err != nil {
		return err
	}
	for _, j := range ended {
		marked, err := c.applies.marked(ctx, j.s.name, e.id)
		if err != nil {
			return err
		}
		n := 0
		for _, scope := range effects {
			if scope == j.s.name {
				n++
			}
		}
		fresh := time.Since(j.d.CreatedAt) < c.cfg.Reach // markers stay for twice as long
		switch {
		case n > 1:
			c.w.add("I10", "%s had %d effects", e.describe(j.s.name), n)
		case j.d.Status == sender.StatusDelivered && fresh && !marked:
			c.w.add("I10", "%s was delivered, and has no marker", e.describe(j.s.name))
		case n == 1 && fresh && !marked:
			c.w.add("I10", "%s had an effect, and has no marker", e.describe(j.s.name))
		case n == 0 && marked:
			if err := c.without(ctx, &e, j); err != nil {
				return err
			}
		}
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if of.done == nil {
		of.done = map[string]int{}
	}
	for _, j := range ended {
		of.done[j.s.name] = e.highest(j.s.name)
	}
	return nil
}

// without checks why an event has a marker and had no effect: it is stale, or it is a
// dead letter.
func (c *cycle) without(ctx context.Context, e *event, j judgement) error {
	why, err := column[int64](ctx, c.applies.base, `SELECT (SELECT count(*) FROM surehook_dedup_dead_letters WHERE scope = $1 AND id = $2)
		+ (SELECT count(*) FROM surehook_dedup_versions WHERE scope = $1 AND object_type = $3 AND object_id = $4 AND version >= $5)`,
		j.s.name, e.id, j.d.Event.Object.Type, j.d.Event.Object.ID, j.d.Version)
	if err != nil {
		return err
	}
	if why[0] == 0 {
		c.w.add("I10", "%s has a marker, and neither had an effect nor is stale nor a dead letter", e.describe(j.s.name))
	}
	return nil
}
