package sender

import (
	"context"
	"errors"
	"net/url"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// Results are recorded together: once there are so many, or so long after the
	// first of them, or at once if nothing else is on the wire. A commit costs
	// much more than a row in it.
	flushResults = 192
	flushAfter   = 5 * time.Millisecond

	// Steps that a wake-up asks for keep this distance, so that a burst of
	// publishes is claimed together.
	stepGap = 2 * time.Millisecond

	// One step does at most so much of each, so that its transactions are short:
	// the application's own commits wait for them where there is one writer.
	expandEvents     = 256
	expandDeliveries = 512
	recordAtOnce     = 256
	claimAtOnce      = 256

	sweepBatch    = 500
	slowScanEvery = 100 * time.Millisecond
	trimEvery     = 10 * time.Second
	minIdle       = 2 * time.Millisecond
	maxErrorPause = 5 * time.Second

	// A delivery whose secret cannot be opened is looked at again after this.
	secretPause = time.Minute
)

// pump is one run of a dispatcher. Its goroutine alone works on the database;
// attempts run on goroutines of their own, and hand their results over under mu.
type pump struct {
	d       *Dispatcher
	stats   Stats
	results chan struct{} // capacity 1: there is something to record, or to give back
	resting chan *attempt // to workers that have nothing to do
	workers sync.WaitGroup
	drained chan struct{}   // closed once nothing more is begun
	wire    context.Context // the attempts'
	giveUp  context.CancelFunc

	lastStep, lastScan, lastTrim time.Time

	mu        sync.Mutex
	slots     *slots
	onWire    map[*attempt]struct{}
	done      []finished
	firstDone time.Time
	back      []givenBack
	draining  bool
}

type finished struct {
	a *attempt
	r Result
}

type givenBack struct {
	a   *attempt
	due time.Time
}

func newPump(d *Dispatcher) *pump {
	eighth := max(1, d.cfg.Slots/8)
	proven := d.cfg.Slots - 2*eighth
	return &pump{
		d: d, results: make(chan struct{}, 1), resting: make(chan *attempt), drained: make(chan struct{}), onWire: map[*attempt]struct{}{},
		slots: newSlots(slotsConfig{
			places:          [Lanes]int{LaneNew: eighth, LaneProven: proven, LaneProbation: eighth},
			perSubscription: min(d.cfg.PerSubscription, proven),
			prefetch:        16,
			hardLimit:       2 * d.cfg.Slots,
		}),
	}
}

// begin gives the attempts a context that outlives ctx, so that they are not cut
// off when a drain begins.
func (p *pump) begin(ctx context.Context) {
	p.wire, p.giveUp = context.WithCancel(context.WithoutCancel(ctx))
}

func (p *pump) run(ctx context.Context) {
	p.begin(ctx)
	idle, pause := minIdle, time.Duration(0)
	for ctx.Err() == nil {
		s, err := p.step(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			pause = min(max(2*pause, 50*time.Millisecond), maxErrorPause)
			p.d.cfg.Logger.ErrorContext(ctx, "the database failed; the dispatcher tries again", "error", err, "in", pause)
			sleep(ctx, pause)
			continue
		case s.busy():
			idle = minIdle
		default:
			idle = min(2*idle, p.d.cfg.MaxIdle)
		}
		pause = 0
		if s.goOn {
			continue
		}
		p.rest(ctx, min(idle, s.untilDue(p.d.cfg.MaxIdle)))
	}
}

// once steps until nothing more is due.
func (p *pump) once(ctx context.Context) error {
	p.begin(ctx)
	for {
		s, err := p.step(ctx)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.mu.Lock()
		held := p.slots.held
		p.mu.Unlock()
		if held == 0 && !s.busy() {
			return nil
		}
		if held > 0 && !s.goOn {
			p.rest(ctx, p.d.cfg.MaxIdle)
		}
	}
}

// stepped is what a step did.
type stepped struct {
	expanded int
	recorded int
	claimed  int
	swept    int
	goOn     bool // there is more to do at once
	now, due time.Time
}

func (s stepped) busy() bool { return s.expanded+s.recorded+s.claimed+s.swept > 0 }

// untilDue is how long to rest before something is due. What is due already was
// kept back by bounds, and waits for results.
func (s stepped) untilDue(most time.Duration) time.Duration {
	if wait := s.due.Sub(s.now); wait > 0 {
		return min(wait, most)
	}
	return most
}

// step expands, records what has ended, and claims and starts as much as there
// is room for.
func (p *pump) step(ctx context.Context) (stepped, error) {
	var s stepped
	p.lastStep = time.Now()
	if err := p.giveBack(ctx); err != nil {
		return s, err
	}
	expanded, err := p.d.store.Expand(ctx, ExpandParams{Events: expandEvents, Deliveries: expandDeliveries})
	if err != nil {
		return s, err
	}
	s.expanded = expanded.Events + expanded.Deliveries
	p.stats.Expanded += expanded.Events

	p.mu.Lock()
	done, more := p.takeDone()
	params := p.slots.claim()
	p.mu.Unlock()
	slots := limitClaim(&params)
	claims, err := p.exchange(ctx, done, params)
	if err != nil {
		return s, err
	}
	s.recorded, s.claimed = len(done), len(claims.Claimed)+len(claims.Interrupted)
	s.now, s.due = claims.Now, claims.NextDue
	p.accept(claims.Claimed)
	if !s.busy() {
		if s.swept, err = p.d.store.Sweep(ctx, sweepBatch); err != nil {
			return s, err
		}
	}
	// More to expand is gone on with at once only while the wire could take it.
	s.goOn = more || len(claims.Claimed) == slots && slots >= flushResults || s.swept == sweepBatch || expanded.More && p.hungry()
	return s, nil
}

// takeDone returns the results to record next, and whether it leaves some.
func (p *pump) takeDone() (done []finished, more bool) {
	n := min(len(p.done), recordAtOnce)
	done, p.done = p.done[:n:n], p.done[n:]
	return done, len(p.done) >= flushResults
}

// limitClaim bounds a claim as a whole, and returns how much it may claim. What is
// proven has the most places by far, and takes what the others leave.
func limitClaim(p *ClaimParams) (slots int) {
	for _, l := range [...]Lane{LaneNew, LaneProbation, LaneProven} {
		p.Lanes[l].Slots = min(p.Lanes[l].Slots, claimAtOnce-slots)
		slots += p.Lanes[l].Slots
	}
	return slots
}

// exchange records and claims, and reports what was recorded.
func (p *pump) exchange(ctx context.Context, done []finished, params ClaimParams) (Claims, error) {
	params.Lease, params.Chance = p.d.cfg.Lease, p.d.cfg.Chance()
	b := Batch{Decide: p.d.cfg.Policy.Decide, Claim: params, Results: make([]Result, len(done))}
	for i := range done {
		b.Results[i] = done[i].r
	}
	claims, err := p.d.store.RecordAndClaim(ctx, b)
	p.mu.Lock()
	if err != nil {
		p.done = append(done[:len(done):len(done)], p.done...)
		p.mu.Unlock()
		return Claims{}, err
	}
	for i := range done {
		p.slots.forget(done[i].a)
	}
	p.mu.Unlock()
	for i := range done {
		r := &claims.Recorded[i]
		r.Target, r.Event, r.Result = done[i].a.Target, done[i].a.Event, done[i].r
		p.report(ctx, r)
	}
	for i := range claims.Interrupted {
		p.report(ctx, &claims.Interrupted[i])
	}
	return claims, nil
}

func (p *pump) report(ctx context.Context, r *Recorded) {
	log := p.d.cfg.Logger
	switch {
	case r.Lost:
		log.WarnContext(ctx, "a result came after its lease was lost and was dropped",
			"event_id", r.Event.ID, "subscription_id", r.Target.Subscription, "attempt", r.Result.Number)
	case r.Decision.Status == StatusDeadLettered:
		p.stats.DeadLettered++
		log.WarnContext(ctx, "a delivery was dead-lettered", "event_id", r.Event.ID, "event_type", r.Event.Type,
			"subscription_id", r.Target.Subscription, "attempt", r.Result.Number, "error_class", string(r.Result.Class))
	case r.Result.Class == ClassNone:
		p.stats.Delivered++
	default:
		p.stats.Failed++
	}
	if hook := p.d.cfg.Hooks.Recorded; hook != nil {
		p.d.guarded(ctx, "Recorded", func() { hook(ctx, r) })
	}
}

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
	if found {
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
		r, due, made := p.attempt(a)
		if !made && p.wire.Err() != nil {
			return // given up by a drain: the lease ends by itself
		}
		if a = p.finish(a, r, due, made); a != nil {
			continue
		}
		select {
		case a = <-p.resting:
		case <-p.drained:
			return
		}
	}
}

// attempt makes one attempt. If made is false nothing was sent, and the delivery
// is given back, due at due.
func (p *pump) attempt(a *attempt) (r Result, due time.Time, made bool) {
	ctx, d := p.wire, p.d
	now := a.At.Add(time.Since(a.claimed))
	defer func() {
		if v := recover(); v != nil {
			d.cfg.Logger.ErrorContext(ctx, "an attempt panicked", "event_id", a.Event.ID, "panic", v, "stack", string(debug.Stack()))
			r = Result{Key: a.Key, Token: a.Token, Number: a.Number, StartedAt: now, Duration: time.Since(a.started),
				Class: ClassProtocol, Error: "the attempt panicked", Chance: d.cfg.Chance()}
			made = true
		}
	}()
	keyring, err := d.secrets.of(ctx, a.Target)
	if err == nil && a.url == nil {
		err = errors.New("sender: the subscription's URL cannot be parsed")
	}
	if err == nil {
		if hook := d.cfg.Hooks.AttemptStart; hook != nil {
			d.guarded(ctx, "AttemptStart", func() { ctx = hook(ctx, &a.Claimed) })
		}
		r, err = d.post.post(ctx, &a.Claimed, a.url, keyring, now)
	}
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Logger.ErrorContext(ctx, "a delivery cannot be sent; it is looked at again later",
				"event_id", a.Event.ID, "subscriber_id", a.Target.Subscriber, "error", err, "in", secretPause)
		}
		return Result{}, now.Add(secretPause), false
	}
	if p.wire.Err() != nil && r.Class != ClassNone {
		return r, time.Time{}, false
	}
	r.Chance = d.cfg.Chance()
	if hook := d.cfg.Hooks.AttemptEnd; hook != nil {
		d.guarded(ctx, "AttemptEnd", func() { hook(ctx, &a.Claimed, &r) })
	}
	return r, time.Time{}, true
}

// finish hands a result over and returns the next attempt for the goroutine.
func (p *pump) finish(a *attempt, r Result, due time.Time, made bool) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.onWire, a)
	if made {
		p.slots.finished(a, r.Class, r.Duration, p.d.cfg.Policy.FastAnswer)
		if len(p.done) == 0 {
			p.firstDone = time.Now()
		}
		p.done = append(p.done, finished{a, r})
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

// giveBack returns claims whose attempts will not be made.
func (p *pump) giveBack(ctx context.Context) error {
	p.mu.Lock()
	back := p.back
	p.back = nil
	p.mu.Unlock()
	if len(back) == 0 {
		return nil
	}
	rs := make([]Release, len(back))
	for i, b := range back {
		rs[i] = Release{Key: b.a.Key, Token: b.a.Token, Due: b.due}
	}
	// A release is never repeated: if its answer was lost it may have happened,
	// and the attempt number may be another dispatcher's by now. What was not
	// released comes back when its lease ends.
	err := p.d.store.Release(ctx, rs)
	p.mu.Lock()
	for _, b := range back {
		p.slots.forget(b.a)
	}
	p.mu.Unlock()
	return err
}

// hungry reports whether the wire could soon idle for want of claims.
func (p *pump) hungry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.held < p.d.cfg.Slots
}

// rest waits until a step is worth its commit.
func (p *pump) rest(ctx context.Context, most time.Duration) {
	began := time.Now()
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-p.d.store.Woken():
			if wait := stepGap - time.Since(p.lastStep); wait > 0 {
				sleep(ctx, wait)
			}
			return
		case <-p.results:
			p.mu.Lock()
			done, first, wire, back := len(p.done), p.firstDone, p.slots.wire, len(p.back)
			p.mu.Unlock()
			if done >= flushResults || wire == 0 || back > 0 {
				return
			}
			if done > 0 {
				left := min(flushAfter-time.Since(first), most-time.Since(began))
				if left <= 0 {
					return
				}
				timer.Reset(left)
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
