package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// audits, prunes, acknowledges and forgets run side by side, each as often as it can,
// until ctx ends.
func (c *cycle) audits(ctx context.Context) error {
	return c.often(ctx, "auditing", func(ctx context.Context) error {
		if err := c.auditAll(ctx); err != nil {
			return err
		}
		_, err := c.checkJobs(ctx)
		return err
	})
}

func (c *cycle) prunes(ctx context.Context) error {
	return c.often(ctx, "pruning", func(ctx context.Context) error {
		if c.ends.calm.Load() { // dead letters must be sent again, however long it takes
			return nil
		}
		if _, err := c.pruner.Prune(ctx); err != nil {
			return err
		}
		if _, err := c.jobs.Prune(ctx); err != nil {
			return err
		}
		return c.applies.pruneMarkers(ctx, time.Now().Add(-2*c.cfg.Reach))
	})
}

func (c *cycle) acknowledges(ctx context.Context) error {
	return c.often(ctx, "acknowledging", c.acknowledge)
}

func (c *cycle) forgets(ctx context.Context) error {
	return c.often(ctx, "forgetting", func(ctx context.Context) error {
		c.vacate()
		if err := c.kept(ctx); err != nil {
			return err
		}
		return c.forget(ctx)
	})
}

func (c *cycle) often(ctx context.Context, what string, do func(ctx context.Context) error) error {
	for pause(ctx, max(c.cfg.Reach/20, 200*time.Millisecond)) {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// auditAll audits the events that were not yet seen to end in order, some at a time.
func (c *cycle) auditAll(ctx context.Context) error {
	some, ctx := errgroup.WithContext(ctx)
	some.SetLimit(4)
	for _, e := range c.w.some(func(e *event) bool { return e.id != "" && !e.checked && time.Since(e.began) > time.Second }) {
		some.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			c.look(e)
			ended, err := c.audit(ctx, e, false)
			c.w.mu.Lock()
			defer c.w.mu.Unlock()
			if e.checked = e.checked && ended && err == nil; e.checked {
				e.ended, e.alive = true, time.Time{}
			}
			return but(err, context.Canceled)
		})
	}
	return some.Wait()
}

// look notes that an event is about to be audited, and marks it as checked. A post that
// comes meanwhile removes that mark.
func (c *cycle) look(e *event) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	e.gap = e.gap || !e.checked && time.Since(e.looked) >= c.cfg.patience()
	e.looked, e.checked = time.Now(), true
}

// vacate removes the slots whose subscriptions went long ago.
func (c *cycle) vacate() {
	for _, s := range c.ends.all() {
		s.mu.Lock()
		long := !s.gone.IsZero() && time.Since(s.gone) > 3*c.cfg.Reach
		s.mu.Unlock()
		if long {
			c.ends.remove(s.name)
		}
	}
}

// forget lets go of events that were pruned.
func (c *cycle) forget(ctx context.Context) error {
	old := c.w.some(func(e *event) bool { return time.Since(e.began) > c.cfg.Reach+500*time.Millisecond })
	ids, err := column[string](ctx, c.db.base, "SELECT id FROM surehook_events")
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, id := range ids {
		kept[id] = true
	}
	gone := slices.DeleteFunc(old, func(e *event) bool { return kept[c.w.idOf(e)] })
	for _, e := range gone {
		c.farewell(e)
	}
	if err := c.things(ctx, gone); err != nil {
		return err
	}
	return c.drop(ctx, gone)
}

// farewell checks an event that the library has pruned. It was looked at regularly, so
// it must have been seen to end in order.
func (c *cycle) farewell(of *event) {
	e := c.w.snapshot(of)
	if e.outcome != committed {
		return
	}
	switch {
	case e.checked:
	case e.gap || e.resent || time.Since(e.looked) >= c.cfg.patience():
		c.w.count("events pruned before they were checked")
	case !e.alive.IsZero():
		c.w.add("I1", "event %s (nonce %d, %s) was pruned, and a delivery of it had not ended %v before, when last seen: %s; it was looked at %v before", e.id, e.nonce, e.kind, time.Since(e.alive), e.last, time.Since(e.looked))
	case e.ended:
		c.w.count("events pruned before they were checked again")
	default:
		c.w.add("I1", "event %s (nonce %d, %s) was pruned, and not all deliveries of it were ever seen", e.id, e.nonce, e.kind)
	}
	if e.inFeed == 0 && !c.feed.excuses(&e) {
		c.w.add("feed", "event %s (nonce %d) was pruned, and never came in the feed", e.id, e.nonce)
	}
}

// kept checks that some records that are not past their time are still there.
func (c *cycle) kept(ctx context.Context) error {
	young := c.w.some(func(e *event) bool {
		return e.id != "" && e.outcome == committed && e.nonce != 0 && time.Since(e.began) < c.cfg.patience()
	})
	for range min(len(young), 20) {
		e := c.w.snapshot(young[c.ends.intN(len(young))])
		asked := time.Now()
		_, err := c.history.Event(ctx, e.id)
		switch {
		case errors.Is(err, sender.ErrNotFound):
			c.w.add("I1", "event %s is gone %v after it was published", e.id, asked.Sub(e.began))
		case err != nil:
			return err
		}
		deliveries, err := c.deliveries(ctx, e.id)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, d := range deliveries {
			there[path.Base(d.URL)] = true
		}
		for name := range e.done {
			if !there[name] {
				c.w.add("I1", "the record is gone of %s, %v after it was published", e.describe(name), asked.Sub(e.began))
			}
		}
	}
	return nil
}

// drop deletes the rows of events in the soak's own tables and in the receivers'.
func (c *cycle) drop(ctx context.Context, gone []*event) error {
	if len(gone) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // all of them, because a part would look wrong
	err := c.db.store.InTx(ctx, func(tx *sql.Tx) error {
		for _, e := range gone {
			if err := c.db.exec(ctx, tx, "DELETE FROM soak_things WHERE nonce = $1", int64(e.nonce)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	letters, ok := c.applies.dedup.(dedup.DeadLetters[*sql.Tx])
	if !ok {
		return errors.New("soak: the receivers' store keeps no dead letters")
	}
	tx, err := c.applies.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, e := range gone {
		if err := c.applies.exec(ctx, tx, "DELETE FROM soak_effects WHERE id = $1", e.id); err != nil {
			return err
		}
		s := c.w.snapshot(e)
		for name := range s.wires {
			if err := but(letters.Discard(ctx, tx, name, e.id), dedup.ErrNotFound); err != nil && e.id != "" {
				return err
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, e := range gone {
		c.w.forget(e)
	}
	return nil
}

// acknowledge reads all notices, so that they are pruned in their time.
func (c *cycle) acknowledge(ctx context.Context) error {
	for {
		page, _, err := c.history.Notices(ctx, history.NoticeQuery{Unread: true, Limit: 200})
		if err != nil || len(page) == 0 {
			return err
		}
		some, inner := errgroup.WithContext(ctx)
		some.SetLimit(4)
		for _, n := range page {
			some.Go(func() error {
				c.w.search("a notice", fmt.Append(nil, n))
				_, err := c.history.Acknowledge(inner, n.ID, "")
				return but(err, sender.ErrNotFound)
			})
		}
		if err := some.Wait(); err != nil {
			return err
		}
	}
}

// things checks that the publishers' own changes were committed with their events, or
// rolled back with them.
func (c *cycle) things(ctx context.Context, of []*event) error {
	nonces, err := column[int64](ctx, c.db.base, "SELECT nonce FROM soak_things")
	if err != nil {
		return err
	}
	there := map[uint64]bool{}
	for _, n := range nonces {
		there[uint64(n)] = true
	}
	for _, one := range of {
		e := c.w.snapshot(one)
		switch {
		case e.nonce == 0 || !e.changes:
		case e.outcome == undone && there[e.nonce]:
			c.w.add("I2", "the change with nonce %d is there, which was rolled back", e.nonce)
		case e.outcome == committed && !there[e.nonce]:
			c.w.add("I1", "the change with nonce %d is gone, whose event is there", e.nonce)
		case e.outcome == unknown && there[e.nonce] && !e.seen:
			c.w.add("I1", "the change with nonce %d is there, and its event was never seen", e.nonce)
		}
	}
	return nil
}
