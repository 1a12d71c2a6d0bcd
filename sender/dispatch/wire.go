package dispatch

import (
	"context"
	"errors"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/surehook/surehook/internal/traceparent"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
	"github.com/surehook/surehook/signing"
)

// accept queues the deliveries that were claimed by a call that began at asked and was
// answered at heard, and starts attempts for which there is room.
func (p *pump) accept(claimed []Claimed, asked, heard time.Time) {
	now := p.d.now()
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
		a := &attempt{Claimed: claimed[i], url: u, asked: asked, claimed: heard}
		if own := claimed[i].Event.URL; own != "" {
			a.url, _ = url.Parse(own)
			a.elsewhere = u != nil && a.url != nil && !sameOrigin(a.url, u)
		}
		if due, ok := p.overtakes(a); ok {
			p.slots.take(a)
			p.back = append(p.back, givenBack{a, due})
		} else {
			p.slots.add(a)
		}
	}
	p.start()
	p.scan(now)
}

// overtakes reports whether a delivery was claimed while others of its chain wait to be
// given back. Then it is given back with them, and is due when they are.
func (p *pump) overtakes(a *attempt) (due time.Time, ok bool) {
	for i := range p.back {
		if p.back[i].a.precedes(a) {
			return p.back[i].due, true
		}
	}
	return time.Time{}, false
}

// start puts all attempts on the wire that may go now.
func (p *pump) start() {
	for a := p.take(); a != nil; a = p.take() {
		p.launch(a)
	}
}

// toWorker makes an attempt on a goroutine of its own. It prefers an idle goroutine,
// because its stack has grown already.
func (p *pump) toWorker(a *attempt) {
	select {
	case p.resting <- a:
	default:
		p.workers.Go(func() { p.work(a) })
	}
}

// take returns an attempt to make now, or nil. An attempt whose lease would end before it
// is given back instead.
func (p *pump) take() *attempt {
	for {
		a := p.slots.next()
		if a == nil {
			return nil
		}
		if now := p.d.now(); p.inTime(a, now) {
			a.started = now
			a.nth, p.onWire = len(p.onWire), append(p.onWire, a)
			return a
		}
		p.returned(p.slots.offWire(a), time.Time{})
		p.signal()
	}
}

// returned notes attempts that must be given back, due at due.
func (p *pump) returned(all []*attempt, due time.Time) {
	for _, a := range all {
		p.back = append(p.back, givenBack{a, due})
	}
}

// inTime tells whether an attempt that begins now can end and be recorded while its lease
// lasts, and whether the lease is still this process's own.
func (p *pump) inTime(a *attempt, now time.Time) bool {
	return now.Sub(a.asked) <= p.d.cfg.Lease-p.d.cfg.Timeout-p.d.cfg.Lease/6 && p.present.vouches(a.asked, now)
}

// scanBefore is when the attempts on the wire are scanned next, if that is before until.
func (p *pump) scanBefore(until time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots.wire == 0 {
		return until
	}
	return earliest(until, p.lastScan.Add(slowScanEvery))
}

// rescan scans, and reports whether it has made room.
func (p *pump) rescan(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scan(now)
}

// scan looks, now and then, for attempts that take long, and gives back the deliveries that
// their subscriptions have queued. It reports whether it found some: there may be room for
// others.
func (p *pump) scan(now time.Time) (found bool) {
	if now.Sub(p.lastTrim) >= trimEvery {
		p.lastTrim = now
		p.slots.trim()
	}
	if now.Sub(p.lastScan) < slowScanEvery {
		return false
	}
	p.lastScan = now
	for _, a := range p.onWire {
		if !a.slow && now.Sub(a.started) > p.d.cfg.Policy.FastAnswer {
			p.slots.slowed(a)
			found = true
		}
	}
	if found || p.slots.crowded {
		p.returned(p.slots.takeQueues(false), time.Time{})
		p.start()
		p.signal()
	}
	return found
}

// work makes attempts until the run ends.
func (p *pump) work(a *attempt) {
	due, made := p.attempt(a)
	p.goOn(a, due, made)
}

// goOn finishes an attempt, and makes others.
func (p *pump) goOn(a *attempt, due time.Time, made bool) {
	for {
		if !made && p.wire.Err() != nil {
			return // a drain gave it up: its lease ends, or is taken over
		}
		if a = p.finish(a, due, made); a == nil {
			select {
			case a = <-p.resting:
			case <-p.drained:
				return
			}
		}
		due, made = p.attempt(a)
	}
}

// attempt makes one attempt, and leaves the result in a. If made is false, nothing was
// sent, and the delivery must be given back, due at due. If a transport or a hook of the
// program's ends the goroutine (runtime.Goexit), as t.FailNow of a test does, another one
// goes on.
func (p *pump) attempt(a *attempt) (due time.Time, made bool) {
	d := p.d
	ctx := p.wire
	whole, panicked := false, false
	defer func() {
		if !whole && !panicked {
			due, made := due, made // so that nothing is allocated otherwise
			p.workers.Go(func() { p.goOn(a, due, made) })
		}
	}()
	defer func() {
		if whole {
			return
		}
		v := recover() // nil: the goroutine ends
		d.cfg.Logger.ErrorContext(p.wire, "an attempt panicked", "event_id", a.Event.ID, "panic", panicText(v), "stack", string(debug.Stack()))
		a.result = Result{Key: a.Key, Token: a.Token, Number: a.Number, StartedAt: a.timeAt(a.started), Duration: d.now().Sub(a.started),
			Class: sender.ClassProtocol, Error: "the attempt panicked"}
		a.excused, made = true, true // also if a hook ends the goroutine now
		made = p.made(ctx, a)
		panicked = v != nil // and no hook ends the goroutine
	}()
	due, made = p.post(&ctx, a)
	whole = true
	return due, made
}

// post does what attempt says. It sets ctx to the attempt's own context.
func (p *pump) post(ctx *context.Context, a *attempt) (due time.Time, made bool) {
	if a.elsewhere {
		return time.Time{}, p.refuse(a)
	}
	own, x, due, ok := p.prepare(a)
	*ctx = own
	if !ok {
		return due, false
	}
	w := x.Send(own, nil)
	a.ended(w)
	if p.d.cfg.Headers.keeps(w.Class) {
		a.result.Headers = keptHeaders(x.Header(), w.Header)
	}
	return time.Time{}, p.made(own, a)
}

// ended sets the attempt's result from the answer to its request.
func (a *attempt) ended(w post.Answer) {
	a.result = Result{
		Key: a.Key, Token: a.Token, Number: a.Number, StartedAt: w.StartedAt, Duration: w.Duration, Class: w.Class, StatusCode: w.StatusCode,
		Error: w.Error, Snippet: w.Snippet, RetryAfter: w.RetryAfter, ProxyFailed: w.ProxyFailed, ClosedIdle: w.ClosedIdle,
	}
	a.excused = w.Ours
}

// timeAt is the database's time at a time of the local clock.
func (a *attempt) timeAt(local time.Time) time.Time { return a.At.Add(local.Sub(a.claimed)) }

// prepare makes the request of an attempt. If ok is false, it cannot be sent, and must be
// given back, due at due.
func (p *pump) prepare(a *attempt) (ctx context.Context, x post.Exchange, due time.Time, ok bool) {
	ctx, d := p.wire, p.d
	reason := PutOffSettings
	keyring, err := d.secrets.of(ctx, a.Target)
	if err != nil {
		reason = PutOffSecret
	}
	local := d.now() // the read of the secret from the database can have taken long
	if err == nil && !p.inTime(a, local) {
		return ctx, x, time.Time{}, false
	}
	now := a.timeAt(local)
	if err == nil && a.url == nil {
		err = errors.New("sender: the subscription's URL cannot be parsed")
	}
	if err == nil {
		x, err = prepare(d.secrets.keys, d.post, post.Request{
			Subscription: a.Target.Subscription, URL: a.url, Event: a.Event.ID, Attempt: a.Number, At: now, Body: a.Body, Keyring: a.signedWith(keyring, now),
			Anew: a.Spared,
		}, a.Target.Settings)
	}
	if err == nil {
		ctx = post.WithDialing(d.attemptStart(ctx, &a.Claimed), &a.dial)
		d.trace(ctx, &x, &a.Claimed)
	}
	if err != nil && !errors.Is(err, errProxyProbed) && ctx.Err() == nil && d.unsent.due(a.Target.SubscriberNumber, d.now()) {
		d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent, nor perhaps others of the subscriber; they are looked at again later",
			"event_id", a.Event.ID, "subscriber_id", a.Target.Subscriber, "error", err, "in", pauseAfter(err))
	}
	if err != nil && ctx.Err() == nil {
		if errors.Is(err, errProxyProbed) {
			reason = PutOffProxy
		}
		p.reportPutOff(ctx, &a.Claimed, reason, pauseAfter(err))
	}
	return ctx, x, now.Add(pauseAfter(err)), err == nil
}

// signedWith is the part of a subscriber's keyring that signs the attempt: all of it,
// except for a test of one secret. If that secret has ended, it cannot be tested, and the
// event is signed as others are.
func (a *attempt) signedWith(k *signing.Keyring, at time.Time) *signing.Keyring {
	if id := sender.TestedSecret(&a.Event); id != "" {
		if only := k.Only(id, at); only != nil {
			return only
		}
	}
	return k
}

// made reports whether a.result tells of a whole attempt, and not of one that a drain gave
// up.
func (p *pump) made(ctx context.Context, a *attempt) bool {
	if p.wire.Err() != nil && a.result.Class != sender.ClassNone {
		return false
	}
	a.result.Chance = p.d.cfg.Chance()
	if hook := p.d.cfg.Hooks.AttemptEnd; hook != nil {
		p.d.guarded(ctx, "AttemptEnd", func() { hook(ctx, &a.Claimed, &a.result) })
	}
	return true
}

// attemptStart calls the hook AttemptStart, and returns the attempt's context.
func (d *Dispatcher) attemptStart(ctx context.Context, c *Claimed) context.Context {
	hook := d.cfg.Hooks.AttemptStart
	if hook == nil {
		return ctx
	}
	own := ctx
	d.guarded(ctx, "AttemptStart", func() {
		if given := hook(ctx, c); given != nil {
			own = withValues{ctx, given}
		}
	})
	return own
}

// withValues is a context with the values of another one. A hook's context that ends early
// would end the attempt as a failure of its endpoint, and one that never ends would outlast a
// drain.
type withValues struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (w withValues) Value(key any) any { return w.values.Value(key) }

// trace sets the header traceparent, if Config.Traceparent gives a value for it.
func (d *Dispatcher) trace(ctx context.Context, x *post.Exchange, c *Claimed) {
	if d.cfg.Traceparent == nil {
		return
	}
	d.guarded(ctx, "Traceparent", func() {
		if given := d.cfg.Traceparent(ctx, c); traceparent.Valid(given) {
			x.SetTraceparent(given)
		}
	})
}

// finish hands a result over and returns the next attempt for the goroutine.
func (p *pump) finish(a *attempt, due time.Time, made bool) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, frees := len(p.onWire)-1, false
	p.onWire[a.nth], p.onWire[last].nth = p.onWire[last], a.nth
	p.onWire[last], p.onWire = nil, p.onWire[:last]
	if made {
		if spared(a.Spared, &a.result) || a.excused {
			p.slots.spared(a)
		} else {
			p.slots.finished(a, a.result.Class, a.result.Duration, p.d.cfg.Policy.FastAnswer)
		}
		now := p.d.now()
		if len(p.done) == 0 {
			p.firstDone = now
		}
		if a.account == sender.LaneProven {
			p.provenDone, p.provenAnswered = true, now
		}
		frees = !p.keptBack && a.keepsOthersBack()
		p.keptBack = p.keptBack || frees
		a.failed = p.observe(a, &a.result)
		if a.excused {
			p.noteMachine(a, now)
		}
		a.Body = nil // its memory is no longer counted
		p.done = append(p.done, a)
		p.stats.Attempted++
	} else {
		p.returned(p.slots.offWire(a), due)
	}
	next := p.take()
	if next != nil {
		p.start()
	}
	if n := len(p.done); !made || (n == 1 || n == flushResults || frees || p.nothingNears()) && !p.mayRest() {
		p.signal()
	}
	return next
}

// keepsOthersBack reports whether other deliveries of its subscription may wait until its
// result is recorded: for a place under a cap of the subscription's own, or behind it in a
// line.
func (a *attempt) keepsOthersBack() bool {
	s := a.Target.Settings
	return s != nil && (s.MaxInFlight > 0 || s.Order != sender.OrderRelaxed)
}

func (p *pump) signal() {
	select {
	case p.results <- struct{}{}:
	default:
	}
}
