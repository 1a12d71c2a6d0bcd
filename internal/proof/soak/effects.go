package soak

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// effects checks the receivers' database for an event whose deliveries have ended, and
// notes that it was checked.
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

// without checks an event that has a marker and had no effect: it must be stale, or a dead
// letter.
func (c *cycle) without(ctx context.Context, e *event, j judgement) error {
	why, err := column[int64](ctx, c.applies.base, `SELECT (SELECT count(*) FROM surehook_dedup_dead_letters WHERE scope = $1 AND id = $2)
		+ (SELECT count(*) FROM surehook_dedup_versions WHERE scope = $1 AND object_type = $3 AND object_id = $4 AND version > $5)`,
		j.s.name, e.id, j.d.Event.Object.Type, j.d.Event.Object.ID, j.d.Version)
	if err != nil {
		return err
	}
	if why[0] == 0 {
		c.w.add("I10", "%s has a marker, and neither had an effect nor is stale nor a dead letter", e.describe(j.s.name))
	}
	return nil
}
