package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

// cycle is one load with faults, and its end.
type cycle struct {
	cfg    *Config
	place  *place
	w      *witness
	log    *slog.Logger
	keys   *sender.Keys
	feed   *reader
	number int
	load   time.Duration
	began  time.Time

	db       *sending
	applies  *applying
	ends     *endpoints
	registry *sender.Registry[*sql.Tx]
	pub      *sender.Publisher[*sql.Tx]
	history  *history.History
	again    *replay.Replays
	jobs     *jobs.Jobs[*sql.Tx]
	pruner   *dispatch.Dispatcher
	owners   []*owner
	replays  []replaying

	backlog atomic.Int64
	first   sync.Once
	loaded  chan struct{} // closed when the first publish was acknowledged
	calmed  chan struct{} // closed when the faults stop
	drained time.Duration

	mu      sync.Mutex
	samples []Sample
}

// run runs a cycle, and returns once all its goroutines have ended.
func (c *cycle) run(ctx context.Context) (err error) {
	if c.db, err = c.place.openSending(ctx); err != nil {
		return err
	}
	defer c.db.close()
	if c.applies, err = c.place.openApplying(ctx); err != nil {
		return err
	}
	defer c.applies.close()
	if c.ends, err = newEndpoints(ctx, c.w, c.applies, c.cfg, c.log); err != nil {
		return err
	}
	defer c.ends.close()
	if err := c.furnish(); err != nil {
		return err
	}
	if err := c.register(ctx); err != nil {
		return err
	}

	// The workers run until all is done, and the load for its time.
	work, stop := context.WithCancel(ctx)
	workers := &crew{ctx: work, stop: stop}
	defer func() { _ = workers.wait() }()
	defer stop()
	for _, name := range []string{"dispatcher 1", "dispatcher 2"} {
		workers.start(func(ctx context.Context) error { return c.dispatcher(ctx, name) })
	}
	workers.start(c.worker)
	workers.start(c.read)
	keeping, rest := context.WithCancel(work)
	keeper := &crew{ctx: keeping, stop: rest}
	defer func() { _ = keeper.wait() }()
	defer rest()
	keeper.start(c.audits)
	keeper.start(c.prunes)
	keeper.start(c.acknowledges)
	keeper.start(c.forgets)
	keeper.start(c.watch)

	c.began = time.Now()
	loading, end := context.WithCancel(work)
	defer end()
	loads := &crew{ctx: loading, stop: end}
	loads.start(func(ctx context.Context) error {
		defer end()
		c.lasts(ctx)
		return nil
	})
	for n := range publishers {
		loads.start(func(ctx context.Context) error { return c.publish(ctx, n) })
	}
	loads.start(c.operate)
	loads.start(c.submit)
	if err := loads.wait(); err != nil {
		return err
	}
	if err := context.Cause(work); err != nil {
		return errors.Join(err, workers.wait(), keeper.wait())
	}
	if err := c.drain(work); err != nil {
		return err
	}
	rest()
	if err := keeper.wait(); err != nil {
		return err
	}
	if err := c.finish(work); err != nil {
		return err
	}
	stop()
	if err := workers.wait(); err != nil {
		c.w.add("drain", "what works did not stop in good order: %v", err)
	}
	return c.empty(ctx)
}

// lasts returns once the load has had its time, and has published something: on a busy
// machine a short load may not get so far.
func (c *cycle) lasts(ctx context.Context) {
	select {
	case <-time.After(c.load):
	case <-ctx.Done():
		return
	}
	select {
	case <-c.loaded:
	case <-ctx.Done():
	}
}

// furnish makes the parts that work on the database.
func (c *cycle) furnish() (err error) {
	if c.registry, c.pub, err = c.senderOn(c.db); err != nil {
		return err
	}
	if c.history, err = history.New(c.db.store, &history.Config{Retention: c.cfg.retention()}); err != nil {
		return err
	}
	if c.again, err = replay.New(c.db.store, &replay.Config{Retention: c.cfg.retention()}); err != nil {
		return err
	}
	if c.jobs, err = c.newJobs(c.db, c.cfg.rng("keeper")); err != nil {
		return err
	}
	p, err := c.cfg.policy()
	if err != nil {
		return err
	}
	c.pruner, err = dispatch.New(c.db.store, c.keys, &dispatch.Config{Policy: p, Retention: c.cfg.retention(), Logger: c.log})
	return err
}

// register makes the owners and the subscriptions that stay.
func (c *cycle) register(ctx context.Context) error {
	for n := range 3 {
		c.w.makes("surehook_subscribers")
		o := &owner{id: fmt.Sprintf("sub_%d-%d", c.number, n)}
		_, secret, err := c.registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: o.id})
		if err != nil {
			return err
		}
		c.w.conceal(secret.Reveal())
		if err := o.trust(secret); err != nil {
			return err
		}
		c.owners = append(c.owners, o)
		callbacks := &slot{name: "jobs-" + o.id, owner: o, temper: temper{status: 10, lost: 10}}
		c.ends.add(callbacks)
		c.w.makes("surehook_subscriptions")
		to, err := c.registry.Callback(ctx, o.id, callbacks.url) // an implicit one, which is paused, disabled and resumed like others
		if err != nil {
			return err
		}
		callbacks.subscription = to.Subscription
	}
	for i, t := range tempers {
		s := &slot{name: fmt.Sprintf("%s-%d", t.name, c.number), owner: c.owners[i%len(c.owners)], types: split(t.types), temper: t.temper}
		if err := c.join(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// watch takes samples until ctx ends, and keeps an eye on the backlog.
func (c *cycle) watch(ctx context.Context) error {
	every := max(c.load/60, time.Second)
	look, take := time.NewTicker(100*time.Millisecond), time.NewTicker(every)
	defer look.Stop()
	defer take.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if counts, err := c.history.Counts(ctx); err == nil {
				c.backlog.Store(counts.Live + counts.Unexpanded)
			}
		case <-take.C:
			s, err := sample(ctx, time.Since(c.began), c.db.base, c.applies.base)
			if err != nil || time.Since(c.began) > c.load {
				continue
			}
			figures := c.w.figures.all()
			s.Done = figures["events acknowledged"] + figures["posts"]
			c.mu.Lock()
			c.samples = append(c.samples, s)
			c.mu.Unlock()
			if n := len(c.samples); n%5 == 0 {
				c.cfg.Progress(fmt.Sprintf("%s: %v of %v, %d posts, %d live deliveries, %d goroutines, %d MB live heap, %d rows",
					c.cfg.Store, s.At.Round(time.Second), c.load, c.w.figures.all()["posts"], c.backlog.Load(), s.Goroutines, s.Heap>>20, s.AllRows()))
			}
		}
	}
}

// crew is a group of goroutines. An error of one ends the others.
type crew struct {
	ctx  context.Context //nolint:containedctx // it is the crew's life
	stop context.CancelFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

func (w *crew) start(do func(ctx context.Context) error) {
	w.wg.Go(func() {
		if err := do(w.ctx); err != nil {
			w.mu.Lock()
			w.errs = append(w.errs, err)
			w.mu.Unlock()
			w.stop()
		}
	})
}

func (w *crew) wait() error {
	w.wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(slices.Clone(w.errs)...)
}
