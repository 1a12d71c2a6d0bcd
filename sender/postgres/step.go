package postgres

import (
	"context"

	"github.com/surehook/surehook/sender/dispatch"
)

var _ dispatch.LargeSteps = (*core)(nil)

// StepSize implements dispatch.LargeSteps.
func (c *core) StepSize() int { return 1024 }

// Step implements dispatch.Store. With nothing to do it only reads. It takes a few round
// trips, however much is done: one finds new events; one finds who gets them; one locks, and
// reads the subscriptions; one or two move deliveries; and the last one commits. The first
// three are one where events are few.
func (c *core) Step(ctx context.Context, p dispatch.ExpandParams, in dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	f := c.turnsFrom()
	var from bound
	if !c.scanFrom.off {
		from = c.scanFrom.outbox.from(c.now())
	}
	var known *around
	if len(in.Results)+len(in.Notices) == 0 {
		var some bool
		known = &around{}
		to := append(append([]any{&known.now}, known.columns()...), &some)
		shared := c.processes.Besides(in.Claim.By.Process)
		if err := c.dispatching().readOne(ctx, selectIdle.Of(shared), lookArgs(&in.Claim, f, shared, p.Events > 0, from.seq), to...); err != nil {
			return dispatch.Expanded{}, dispatch.Claims{}, fail("looking for what is due", err)
		}
		if next := known.next(); next > known.now && !known.woken && !some {
			return dispatch.Expanded{}, dispatch.Claims{Now: known.now.time(), NextDue: next.time()}, nil
		}
		if !some {
			p = dispatch.ExpandParams{}
		}
	}
	var ahead *bodies
	if p.Events > 0 {
		if ahead = c.ahead.Swap(nil); ahead == nil {
			ahead = newBodies()
		}
		defer c.ahead.Store(ahead)
	}
	var x dispatch.Expanded
	var b *batch
	err := c.dispatching().writeAs(ctx, work{dates: p.Events > 0}, func(w *work) (err error) {
		b = w.batch(in)
		b.bodies = ahead
		x, err = b.run(p, from, f, known)
		return fail("expanding, recording and claiming", err)
	})
	if err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, err
	}
	c.giveBodies(ctx, b)
	return x, b.out, nil
}

func (b *batch) run(p dispatch.ExpandParams, from bound, f turnsFrom, known *around) (x dispatch.Expanded, err error) {
	if p.Events > 0 {
		known = &around{} // what the transaction itself sees
	}
	l := b.loading(f, known)
	e, more, err := b.expand(p, from, l)
	if err != nil {
		return x, err
	}
	if x.More = more; e != nil {
		x = e.x
	}
	found, err := l.load(e.recipients())
	if err != nil {
		return x, err
	}
	b.out.Now, b.leases = b.now.time(), found.leases
	if err := e.skip(); err != nil {
		return x, err
	}
	if err := e.lineUp(); err != nil {
		return x, err
	}
	e.arrive()
	if err := b.recordAll(); err != nil {
		return x, err
	}
	if err := b.advance(true); err != nil {
		return x, err
	}
	for _, n := range b.Notices {
		if err := b.notify(n); err != nil {
			return x, err
		}
	}
	served, err := b.claimAll(found.due)
	if err != nil {
		return x, err
	}
	if err := e.store(); err != nil {
		return x, err
	}
	if err := b.finish(served); err != nil {
		return x, err
	}
	e.readAhead()
	if known != nil && !b.moved { // then the look still holds
		b.out.NextDue = known.next().time()
		return x, nil
	}
	b.pipeline.queue(b.query(b.of(&selectNextDue), lookArgs(&b.Claim, f, b.shared)...).rows(func(r rows) error {
		var next timestamp
		err := r.Scan(&next)
		b.out.NextDue = next.time()
		return err
	}))
	return x, nil
}
