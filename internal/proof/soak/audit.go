package soak

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
)

// audit checks the witness's records of an event against the library's and the
// receivers'. It returns whether all its deliveries have ended; at the end of a cycle
// they must have.
func (c *cycle) audit(ctx context.Context, of *event, final bool) (ended bool, err error) {
	e := c.w.snapshot(of)
	deliveries, err := c.deliveries(ctx, e.id)
	if err != nil {
		return false, err
	}
	asked := time.Now()
	var judged []judgement
	alive := false
	found := map[string]bool{}
	last, resent := "", true
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
		case errors.Is(err, sender.ErrNotFound): // pruned meanwhile, and so it is missing
			delete(found, name)
		case err != nil:
			return false, err
		case ends:
			judged = append(judged, judgement{s, full})
		default:
			alive = true
			last = fmt.Sprintf("%s, %s, %d attempts, due %v", name, full.Status, len(full.Attempts), full.NextAttemptAt)
			resent = resent && slices.ContainsFunc(full.Attempts, succeeded)
		}
	}
	if alive {
		c.w.stillAlive(of, last, resent)
	}
	if err := c.effects(ctx, of, judged); err != nil {
		return false, err
	}
	c.stray(&e, found, asked)
	return c.missing(&e, found, final) && !alive, nil
}

// stray looks for posts of deliveries that are not on record. Deliveries that were
// posted a while ago may have been pruned since.
func (c *cycle) stray(e *event, found map[string]bool, asked time.Time) {
	for name, d := range e.wires {
		_, known := e.done[name]
		if found[name] || known || c.ends.slot(name) == nil {
			continue
		}
		if last := d.posts[len(d.posts)-1]; asked.Sub(last.at) < c.cfg.patience() {
			c.w.add("I3", "no delivery is on record of %s", e.describe(name))
		}
	}
}

// judgement is a delivery that has ended in order, as its record says.
type judgement struct {
	s *slot
	d *sender.Delivery
}

// missing looks for deliveries that must be there and are not, and returns whether
// there are none. If an event was not looked at for a while, its deliveries may have
// been made, have ended, and have been pruned meanwhile.
func (c *cycle) missing(e *event, found map[string]bool, final bool) (none bool) {
	none = true
	for _, s := range c.ends.all() {
		_, known := e.done[s.name]
		if !c.must(e, s) || found[s.name] || known {
			continue
		}
		none = false
		switch {
		case !final:
		case e.gap:
			c.w.count("deliveries pruned before they were checked")
		default:
			c.w.add("I1", "there is no delivery of %s (nonce %d)", e.describe(s.name), e.nonce)
		}
	}
	return none
}

// must tells whether a subscription must have a delivery of an event, as far as the
// witness knows for whom the event is.
func (c *cycle) must(e *event, s *slot) bool {
	switch {
	case e.kind == jobs.CompletedType:
		return s.name == c.w.callback(e.object.ID)
	case e.nonce == 0 || e.outcome != committed:
		return false
	default:
		must, _ := s.due(e)
		return must
	}
}

func (c *cycle) deliveries(ctx context.Context, eventID string) (all []sender.Delivery, err error) {
	q := history.DeliveryQuery{Event: eventID, Limit: 200}
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
