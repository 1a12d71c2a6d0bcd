package sender

import (
	"context"
	"errors"
	"net/url"
	"runtime/debug"
	"time"
)

// accept queues what was claimed and starts what may start.
func (p *pump) accept(claimed []Claimed) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	parsed := map[*Target]*url.URL{}
	for i := range claimed {
		t := claimed[i].Target
		u, ok := parsed[t]
		if !ok {
			u, _ = url.Parse(t.URL)
			parsed[t] = u
		}
		if own := claimed[i].Event.URL; own != "" {
			u, _ = url.Parse(own)
		}
		p.slots.add(&attempt{Claimed: claimed[i], url: u, claimed: now})
	}
	p.start()
	p.scan(now)
}

// start puts on the wire what may go there, each attempt on a goroutine of its
// own: one that rests if there is one, since its stack has grown already.
func (p *pump) start() {
	for a := p.take(); a != nil; a = p.take() {
		select {
		case p.resting <- a:
		default:
			p.workers.Go(func() { p.work(a) })
		}
	}
}

// take returns an attempt to make now, or nil. One whose lease would not outlast
// it is given back instead.
func (p *pump) take() *attempt {
	if p.draining {
		return nil
	}
	latest := p.d.cfg.Lease - p.d.cfg.Timeout - p.d.cfg.Lease/6
	for {
		a := p.slots.next()
		if a == nil {
			return nil
		}
		if time.Since(a.claimed) <= latest {
			a.started = time.Now()
			p.onWire[a] = struct{}{}
			return a
		}
		p.slots.offWire(a)
		p.back = append(p.back, givenBack{a: a})
		p.signal()
	}
}

// scan looks, now and then, for attempts that take long, and gives back what
// their subscriptions have queued.
func (p *pump) scan(now time.Time) {
	if now.Sub(p.lastTrim) >= trimEvery {
		p.lastTrim = now
		p.slots.trim()
	}
	if now.Sub(p.lastScan) < slowScanEvery {
		return
	}
	p.lastScan = now
	found := false
	for a := range p.onWire {
		if !a.slow && now.Sub(a.started) > p.d.cfg.Policy.FastAnswer {
			p.slots.slowed(a)
			found = true
		}
	}
	if found || p.slots.crowded {
		for _, a := range p.slots.takeQueues(false) {
			p.back = append(p.back, givenBack{a: a})
		}
		p.start()
		p.signal()
	}
}

// work makes attempts until the run ends.
func (p *pump) work(a *attempt) {
	for {
		due, made := p.attempt(a)
		if !made && p.wire.Err() != nil {
			return // given up by a drain: the lease ends by itself
		}
		if a = p.finish(a, due, made); a != nil {
			continue
		}
		select {
		case a = <-p.resting:
		case <-p.drained:
			return
		}
	}
}

// attempt makes one attempt, and leaves its result in it. If made is false nothing was
// sent, and the delivery is given back, due at due.
func (p *pump) attempt(a *attempt) (due time.Time, made bool) {
	ctx, d := p.wire, p.d
	now := a.At.Add(time.Since(a.claimed))
	defer func() {
		if v := recover(); v != nil {
			d.cfg.Logger.ErrorContext(ctx, "an attempt panicked", "event_id", a.Event.ID, "panic", panicText(v), "stack", string(debug.Stack()))
			a.result = Result{Key: a.Key, Token: a.Token, Number: a.Number, StartedAt: now, Duration: time.Since(a.started),
				Class: ClassProtocol, Error: "the attempt panicked", Chance: d.cfg.Chance()}
			made = true
		}
	}()
	keyring, err := d.secrets.of(ctx, a.Target)
	if err == nil && a.url == nil {
		err = errors.New("sender: the subscription's URL cannot be parsed")
	}
	if err == nil {
		ctx = withDialing(d.attemptStart(ctx, &a.Claimed), &a.dial)
		a.result, err = d.post.post(ctx, &a.Claimed, a.url, keyring, now)
	}
	if err != nil {
		if ctx.Err() == nil && d.unsent.tell(a.Target.SubscriberNumber, time.Now()) {
			d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent, nor perhaps others of the subscriber; they are looked at again later",
				"event_id", a.Event.ID, "subscriber_id", a.Target.Subscriber, "error", err, "in", pauseAfter(err))
		}
		return now.Add(pauseAfter(err)), false
	}
	if p.wire.Err() != nil && a.result.Class != ClassNone {
		return time.Time{}, false
	}
	a.result.Chance = d.cfg.Chance()
	if hook := d.cfg.Hooks.AttemptEnd; hook != nil {
		d.guarded(ctx, "AttemptEnd", func() { hook(ctx, &a.Claimed, &a.result) })
	}
	return time.Time{}, true
}

// attemptStart calls the hook, and returns the attempt's context.
func (d *Dispatcher) attemptStart(ctx context.Context, c *Claimed) context.Context {
	hook := d.cfg.Hooks.AttemptStart
	if hook == nil {
		return ctx
	}
	own := ctx
	d.guarded(ctx, "AttemptStart", func() {
		if given := hook(ctx, c); given != nil {
			own = given
		}
	})
	return own
}

// finish hands a result over and returns the next attempt for the goroutine.
func (p *pump) finish(a *attempt, due time.Time, made bool) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.onWire, a)
	if made {
		p.slots.finished(a, a.result.Class, a.result.Duration, p.d.cfg.Policy.FastAnswer)
		if len(p.done) == 0 {
			p.firstDone = time.Now()
		}
		a.failed = p.observe(a, &a.result)
		p.done = append(p.done, a)
		p.stats.Attempted++
	} else {
		p.slots.offWire(a)
		p.back = append(p.back, givenBack{a, due})
	}
	next := p.take()
	if next != nil {
		p.start()
	}
	if n := len(p.done); n == 1 || n == flushResults || p.slots.wire == 0 || !made {
		p.signal()
	}
	return next
}

func (p *pump) signal() {
	select {
	case p.results <- struct{}{}:
	default:
	}
}
