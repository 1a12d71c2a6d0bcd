package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

// drain stops the faults, resumes held deliveries, replays dead letters, publishes one
// last event of each object, and waits until everything is delivered and read.
func (c *cycle) drain(ctx context.Context) error {
	c.ends.calm.Store(true)
	close(c.calmed)
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Drain, fmt.Errorf("soak: after %v not all was delivered", c.cfg.Drain))
	defer cancel()
	for _, s := range c.living(func(s *slot) bool { return s.refused }) {
		if _, err := c.registry.Update(ctx, s.subscription, sender.SubscriptionChange{URL: &s.url}); err != nil {
			return err
		}
	}
	last, err := c.bells(ctx)
	if err != nil {
		return err
	}
	for left := "the first look"; left != ""; {
		now, err := c.push(ctx)
		if err == nil {
			left = now
		}
		if ctx.Err() != nil || left != "" && !pause(ctx, 50*time.Millisecond) {
			c.w.add("I1", "the faults stopped %v ago, and still: %s", time.Since(began), left)
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	c.drained = time.Since(began)
	return c.converged(ctx, last)
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// push sends everything again that can be sent again, and returns the work that drain still
// waits for.
func (c *cycle) push(ctx context.Context) (left string, err error) {
	c.follow(ctx)
	for _, s := range c.living(whichever) {
		now, err := c.registry.Subscription(ctx, s.subscription)
		if err != nil {
			return "", err
		}
		if now.Status != sender.SubscriptionActive {
			if err := c.resume(ctx, s, sender.Resume{Force: true}); err != nil {
				return "", err
			}
			left = "subscriptions are resumed"
		}
		if now.DeadLettered > 0 {
			left = "dead letters are replayed"
			if !slices.ContainsFunc(c.replays, func(r replaying) bool { return r.s == s }) {
				f := replay.Filter{Subscription: s.subscription, Status: sender.StatusDeadLettered}
				if err := c.replayAll(ctx, s, replay.Request{Filter: f, Force: true, By: "soak"}); err != nil {
					return "", err
				}
			}
		}
	}
	// The jobs come before the counts: a job that ends after the counts publishes an event
	// that they do not include.
	running, err := c.checkJobs(ctx)
	if err != nil {
		return "", err
	}
	counts, err := c.history.Counts(ctx)
	if err != nil {
		return "", err
	}
	unread := c.w.some(func(e *event) bool { return e.outcome == committed && e.inFeed == 0 && !c.feed.excuses(e) })
	switch {
	case counts.Live+counts.Held+counts.Unexpanded > 0:
		return fmt.Sprintf("%d deliveries are live, %d held, %d events not expanded", counts.Live, counts.Held, counts.Unexpanded), nil
	case len(c.replays) > 0:
		return fmt.Sprintf("%d replays are not finished", len(c.replays)), nil
	case running > 0:
		return fmt.Sprintf("%d jobs have not ended", running), nil
	case len(unread) > 0:
		return fmt.Sprintf("%d events were not read from the feed", len(unread)), nil
	case left != "":
		return left, nil
	}
	// Processes that were cut off are taken over, and those without leases leave.
	present, err := c.db.store.Present(ctx)
	if len(present) > 0 {
		left = fmt.Sprintf("%d processes are known", len(present))
	}
	return left, err
}

// bells publishes two last events of each object that publishers share, and returns
// the last version that each filter selects.
func (c *cycle) bells(ctx context.Context) ([]*event, error) {
	var all []*event
	for n := range c.cfg.objects() {
		for _, kind := range []string{"a.x", "b.x"} {
			for poison := true; poison; {
				e := c.w.begin(&event{kind: kind, object: sender.Object{Type: "thing", ID: fmt.Sprint(n)}})
				ref, err := c.pub.Publish(ctx, e.published(0))
				if err != nil {
					return nil, err
				}
				c.w.end(e, committed, ref)
				if poison = poisoned(e.nonce); !poison {
					all = append(all, e)
				}
			}
		}
	}
	return all, nil
}

// converged checks that every receiver has the newest state of each object.
func (c *cycle) converged(ctx context.Context, last []*event) error {
	for _, s := range c.living(whichever) {
		want := map[string]int64{}
		for _, e := range last {
			if s.matches(e) {
				want[e.object.Type+"/"+e.object.ID] = e.version
			}
		}
		for object, version := range want {
			got, err := column[int64](ctx, c.applies.base, "SELECT version FROM soak_states WHERE scope = $1 AND object = $2", s.name, object)
			if err != nil {
				return err
			}
			if len(got) != 1 || got[0] != version {
				c.w.add("I10", "all is delivered, and %s has %s in version %v, not %d", s.name, object, got, version)
			}
		}
	}
	return nil
}

// newest checks that the receivers' library and the application, which wrote in the
// same transactions, have the same versions of all objects.
func (c *cycle) newest(ctx context.Context) error {
	const all = "SELECT scope || ' ' || object_type || '/' || object_id || ' ' || version FROM surehook_dedup_versions"
	library, err := column[string](ctx, c.applies.base, all)
	if err != nil {
		return err
	}
	application, err := column[string](ctx, c.applies.base, "SELECT scope || ' ' || object || ' ' || version FROM soak_states")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, v := range application {
		there[v] = true
	}
	for _, v := range library {
		if !there[v] {
			c.w.add("I10", "the receivers' store has this version, and the application has another: %s", v)
		}
		delete(there, v)
	}
	for v := range there {
		c.w.add("I10", "the application has this version, and the receivers' store has another: %s", v)
	}
	return nil
}

// finish checks everything for the last time, and ends the subscriptions.
func (c *cycle) finish(ctx context.Context) error {
	for _, e := range c.w.some(func(e *event) bool { return e.id != "" && e.outcome != undone }) {
		c.look(e)
		if _, err := c.audit(ctx, e, true); err != nil {
			return err
		}
		if e.outcome == committed && e.inFeed == 0 && !c.feed.excuses(e) {
			c.w.add("feed", "event %s (nonce %d) never came in the feed", e.id, e.nonce)
		}
	}
	if err := c.things(ctx, c.w.some(func(*event) bool { return true })); err != nil {
		return err
	}
	c.checkCallbacks()
	if err := c.lastReplay(ctx); err != nil {
		return err
	}
	for _, o := range c.owners {
		if err := c.registry.DeleteSubscriber(ctx, o.id); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Drain)
	defer cancel()
	for {
		left, _, err := c.history.Subscriptions(ctx, sender.SubscriptionQuery{})
		if err != nil {
			return err
		}
		rows, err := c.db.rows(ctx)
		if err != nil {
			return err
		}
		wakes := rows["surehook_wakes"] // of PostgreSQL: subscriptions that changed, and that a dispatcher has yet to look at
		if len(left) == 0 && wakes == 0 {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			c.w.add("I12", "%d subscriptions and %d wakes were left %v after the subscribers were deleted", len(left), wakes, c.cfg.Drain)
			return nil
		}
	}
}

// lastReplay sends nothing. The end of a replay removes the late rows of the replays
// before it: one for each attempt that was in flight when they ended.
func (c *cycle) lastReplay(ctx context.Context) error {
	c.w.makes("surehook_replays")
	r, err := c.again.Create(ctx, replay.Request{Filter: replay.Filter{Status: sender.StatusDelivered, EventType: "nothing.at.all"}, By: "soak"})
	if err != nil {
		return err
	}
	for r.FinishedAt.IsZero() {
		if !pause(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
		if r, err = c.again.Get(ctx, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// empty prunes everything that can be pruned, as if much time had passed. All workers
// have stopped.
func (c *cycle) empty(ctx context.Context) error {
	if err := c.newest(ctx); err != nil {
		return err
	}
	if err := c.acknowledge(ctx); err != nil {
		return err
	}
	later := time.Now().Add(time.Hour)
	p := dispatch.PruneParams{Delivered: later, DeadLetters: later, Events: later, Notices: later, Rollups: later, SubscriptionRollups: later, Limit: 500}
	// Notices that a pass removes let events go in the next.
	for pass, removed := 0, 1; removed > 0 && pass < 10; pass++ {
		removed = 0
		for p.Cursor = ""; ; {
			done, err := c.db.store.Prune(ctx, p)
			if err != nil {
				return err
			}
			removed += done.Deliveries + done.DeadLetters + done.Events + done.Notices + done.Rollups + done.SubscriptionRollups
			if p.Cursor = done.Cursor; p.Cursor == "" {
				break
			}
		}
	}
	if err := c.applies.pruneMarkers(ctx, later); err != nil {
		return err
	}
	for _, e := range c.w.some(func(e *event) bool { return e.outcome == committed }) {
		if _, err := c.history.Event(ctx, e.id); !errors.Is(err, sender.ErrNotFound) {
			c.w.add("I12", "event %s is still there after all was pruned: %v", e.id, err)
		}
	}
	if err := c.drop(ctx, c.w.some(func(*event) bool { return true })); err != nil {
		return err
	}
	return c.dropJobs(ctx)
}

func split(types string) []string { return strings.Split(types, ",") }
