package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// operator acts like operators and owners, until ctx ends.
type operator struct {
	*cycle
	rng     *rand.Rand
	made    int
	rotated map[string]time.Time
}

// replaying is a replay that was running when it was last looked at. One goroutine follows
// the replays: the operator's, and after it the one that ends the cycle.
type replaying struct {
	id string
	s  *slot
	at int // its span
}

// atMostPassing is the highest number of subscriptions that come and go.
const atMostPassing = 3

func (c *cycle) operate(ctx context.Context) error {
	o := &operator{cycle: c, rng: c.cfg.rng("operator"), rotated: map[string]time.Time{}}
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		if err := o.act(ctx); err != nil && ctx.Err() == nil {
			c.w.count("operator's acts that failed")
			c.w.add("operator", "an act failed: %v", err)
		}
		o.follow(ctx)
	}
}

func (o *operator) act(ctx context.Context) error {
	switch n := o.rng.IntN(100); {
	case n < 25:
		return o.stopOrGo(ctx)
	case n < 45:
		return o.redeliver(ctx)
	case n < 55:
		return o.replay(ctx)
	case n < 65:
		return o.rotate(ctx)
	case n < 75:
		return o.move(ctx)
	case n < 85:
		return o.subscribe(ctx)
	case n < 95:
		return o.leave(ctx)
	default:
		return o.test(ctx)
	}
}

// living returns the slots whose subscriptions are neither closed nor implicit.
func (c *cycle) living(choose func(s *slot) bool) (list []*slot) {
	for _, s := range c.ends.all() {
		s.mu.Lock()
		if s.subscription != "" && s.left.IsZero() && choose(s) {
			list = append(list, s)
		}
		s.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b *slot) int { return a.made.Compare(b.made) })
	return list
}

func whichever(*slot) bool { return true }

func (o *operator) one(choose func(s *slot) bool) *slot {
	list := o.living(choose)
	if len(list) == 0 {
		return nil
	}
	return list[o.rng.IntN(len(list))]
}

// stopOrGo pauses or disables an active subscription, or resumes a held one.
func (o *operator) stopOrGo(ctx context.Context) error {
	s := o.one(func(s *slot) bool { return !s.passing })
	now, err := o.registry.Subscription(ctx, s.subscription)
	switch {
	case err != nil:
		return err
	case now.Status == sender.SubscriptionActive && o.rng.IntN(4) > 0:
		o.w.count("operator: pause")
		return but(o.registry.Pause(ctx, s.subscription), sender.ErrStatus) // it may have been disabled since
	case now.Status == sender.SubscriptionActive:
		o.w.count("operator: disable")
		return o.registry.Disable(ctx, s.subscription, "soaking")
	}
	take := sender.Resume{}
	switch o.rng.IntN(6) {
	case 0:
		take.None = true
	case 1:
		take.Since = time.Now().Add(-200 * time.Millisecond)
	}
	o.w.count("operator: resume")
	return o.resume(ctx, s, take)
}

// resume makes a subscription active, and skips the events beyond the reach.
func (c *cycle) resume(ctx context.Context, s *slot, take sender.Resume) error {
	do := func() error {
		resume := func() error {
			return s.act(&s.resumes, func() error { return c.registry.Resume(ctx, s.subscription, take) })
		}
		if !take.None && take.Since.IsZero() {
			return resume()
		}
		return s.shear(take.Since, resume)
	}
	err := do()
	if errors.Is(err, sender.ErrRetention) {
		take = sender.Resume{Since: time.Now().Add(-c.cfg.Reach / 2)}
		err = do()
	}
	return err
}

// but returns err, unless it is one of the errors that may happen.
func but(err error, fine ...error) error {
	for _, f := range fine {
		if errors.Is(err, f) {
			return nil
		}
	}
	return err
}

// redeliver sends a delivery again, whatever its status.
func (o *operator) redeliver(ctx context.Context) error {
	statuses := []sender.Status{sender.StatusDelivered, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusAwaitingRetry}
	page, _, err := o.history.Deliveries(ctx, history.DeliveryQuery{Status: statuses[o.rng.IntN(len(statuses))], Limit: 100})
	if err != nil || len(page) == 0 {
		return err
	}
	d := page[o.rng.IntN(len(page))]
	err = o.w.redelivers(d.Event.ID, d.Subscription, func() error { return o.history.Redeliver(ctx, d.ID) })
	o.w.count("operator: redeliver")
	return but(err, sender.ErrNotFound, sender.ErrCancelled, sender.ErrRetention, sender.ErrStatus)
}

// replay replays a subscription's dead letters, or a part of its delivered events.
func (o *operator) replay(ctx context.Context) error {
	f := replay.Filter{Status: sender.StatusDeadLettered}
	if o.rng.IntN(4) == 0 {
		f = replay.Filter{Status: sender.StatusDelivered, Since: time.Now().Add(-time.Second)}
	}
	s := o.one(whichever)
	f.Subscription = s.subscription
	o.w.count("operator: replay")
	return but(o.replayAll(ctx, s, replay.Request{Filter: f, Rate: 200, By: "soak"}), sender.ErrRetention, sender.ErrNotFound)
}

func (c *cycle) replayAll(ctx context.Context, s *slot, n replay.Request) error {
	s.mu.Lock()
	s.replays = append(s.replays, span{what: string(n.Filter.Status), from: time.Now()})
	at := len(s.replays) - 1
	s.mu.Unlock()
	c.w.makes("surehook_replays")
	r, err := c.again.Create(ctx, n)
	if err != nil {
		s.endReplay(at)
		return err
	}
	c.replays = append(c.replays, replaying{r.ID, s, at})
	return nil
}

// follow looks which replays have come to their end.
func (c *cycle) follow(ctx context.Context) {
	c.replays = slices.DeleteFunc(c.replays, func(r replaying) bool {
		now, err := c.again.Get(ctx, r.id)
		if err != nil || now.FinishedAt.IsZero() {
			return false
		}
		r.s.endReplay(r.at)
		return true
	})
}

// rotate gives an owner a new secret.
func (o *operator) rotate(ctx context.Context) error {
	who := o.owners[o.rng.IntN(len(o.owners))]
	if time.Since(o.rotated[who.id]) < 2*o.cfg.lease() { // posts in flight carry the secret before
		return nil
	}
	o.rotated[who.id] = time.Now()
	if err := o.registry.RetireSecret(ctx, who.id); err != nil {
		return err
	}
	secret, _, err := o.registry.RotateSecret(ctx, who.id, nil)
	if err != nil {
		return err
	}
	o.w.count("operator: rotate a secret")
	o.w.conceal(secret.Reveal())
	return who.trust(secret)
}

// move leads a subscription to a closed port, or back.
func (o *operator) move(ctx context.Context) error {
	s := o.one(func(s *slot) bool { return s.refused })
	url := o.ends.closed + s.name
	if o.rng.IntN(2) == 0 {
		url = s.url
	}
	o.w.count("operator: change a URL")
	_, err := o.registry.Update(ctx, s.subscription, sender.SubscriptionChange{URL: &url})
	return err
}

// test sends a test event.
func (o *operator) test(ctx context.Context) error {
	o.w.count("operator: test event")
	_, err := o.registry.SendTest(ctx, o.one(func(s *slot) bool { return len(s.types) > 0 }).subscription)
	return but(err, sender.ErrStatus)
}
