package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// dispatcher stands for a process that dispatches, with connections of its own. It has
// one life after the other. A life ends in good order, or cut off from the database.
func (c *cycle) dispatcher(ctx context.Context, name string) error {
	rng := c.cfg.rng(name)
	for {
		if err := c.life(ctx, rng); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() != nil {
			return nil
		}
		c.w.count("restarts of dispatchers")
	}
}

func (c *cycle) life(ctx context.Context, rng *rand.Rand) error {
	db, err := c.place.openSending(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	l := &link{Store: db.store, lease: c.cfg.lease(), w: c.w, calm: &c.ends.calm, rng: rand.New(rand.NewPCG(rng.Uint64(), 1))}
	p, err := c.cfg.policy()
	if err != nil {
		return err
	}
	patience := time.Duration(1)
	calm := c.ends.calm.Load()
	keep := c.cfg.retention()
	if calm { // the rest must get through, however busy the machine is
		patience, keep.DeadLetters = 4, -1
	}
	d, err := dispatch.New(l.wire(), c.keys, &dispatch.Config{
		Policy: p, Timeout: patience * c.cfg.Timeout, Lease: patience * c.cfg.lease(), Slots: 48, PerSubscription: 8, MaxIdle: 20 * time.Millisecond,
		Network: sender.Network{AllowPrivateNetworks: true}, Retention: keep, Logger: c.log,
		Notifier: c.notify,
		Hooks: dispatch.Hooks{
			Recorded: func(_ context.Context, r *dispatch.Recorded) { c.w.recorded(r) },
			PutOff:   func(_ context.Context, p dispatch.PutOff) { c.w.putOff(p) },
			Pruned: func(_ context.Context, p dispatch.Pruned) {
				c.w.countN("deliveries pruned", int64(p.Deliveries+p.DeadLetters))
				c.w.countN("events pruned", int64(p.Events))
			},
			Noticed: func(context.Context, sender.Notice) { c.w.count("notices") },
		},
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- d.Run(run) }()
	mean := min(max(c.load/8, 500*time.Millisecond), 20*time.Second)
	life := time.NewTimer(time.Duration((0.5 + rng.Float64()) * float64(mean)))
	defer life.Stop()
	if calm {
		return c.last(ctx, done)
	}
	select {
	case err := <-done: // only ctx or a database that is not fit ends it
		if ctx.Err() == nil {
			return fmt.Errorf("Run ended by itself: %w", err)
		}
		return err
	case <-ctx.Done():
		return <-done // in good order: nothing may be given up
	case <-c.calmed:
	case <-life.C:
	}
	if !c.ends.calm.Load() && rng.IntN(3) == 0 {
		c.w.count("dispatchers cut off")
		l.cut.Store(true)
	}
	stop()
	if err := <-done; err != nil && !errors.Is(err, dispatch.ErrDrainTimeout) {
		return err
	}
	return nil
}

// last lets a dispatcher run to the end of the cycle.
func (c *cycle) last(ctx context.Context, done chan error) error {
	select {
	case err := <-done:
		if ctx.Err() == nil {
			return fmt.Errorf("Run ended by itself: %w", err)
		}
		return err
	case <-ctx.Done():
		return <-done
	}
}

// notify is a Notifier that fails every third time.
func (c *cycle) notify(context.Context, sender.Notice) error {
	if !c.ends.calm.Load() && c.ends.intN(3) == 0 {
		return errDrawn
	}
	c.w.count("notices accepted")
	return nil
}
