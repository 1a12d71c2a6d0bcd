package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// While endpoints that answer fast are at work, a step claims at most unprovenClaims
	// deliveries in each of the other lanes, or one for every unprovenShare results that it
	// records. Thirty first attempts that begin at once delay all attempts under way. With
	// fewer first attempts in a step, the additional steps cause that delay.
	unprovenClaims = 12
	unprovenShare  = 4
	// Such endpoints count as at work for this long after their last answer.
	provenRest = time.Second

	// One step expands, records and claims about this many of each, unless the store is one
	// of LargeSteps, so that its transactions are short. On a database with one writer, the
	// application's own commits wait for them.
	stepSize = 256

	// An event with more than largestWhole deliveries is expanded in parts, so that the
	// next event waits neither for a long step nor behind all of these deliveries. A part
	// is no larger than the wire could take soon, and at least leastPart.
	largestWhole = 256
	leastPart    = 64

	slowScanEvery = 100 * time.Millisecond
	trimEvery     = 10 * time.Second

	// The dispatcher looks again after this pause at a delivery whose secret cannot be
	// opened.
	secretPause = time.Minute

	// A call of the store is given up after this time, or after a lease if that is longer. Its
	// connection hangs, and the system would keep that for a quarter of an hour and more.
	callTimeout = 2 * time.Minute
)

// pump is one run of a dispatcher. Its goroutine alone expands, claims and records.
// Attempts run on goroutines of their own, and hand their results over under mu.
type pump struct {
	d       *Dispatcher
	upkeep  *upkeep
	present *presence
	stats   Stats
	launch  func(a *attempt) // has an attempt made and finished
	results chan struct{}    // capacity 1: there is something to record, or to give back
	noticed chan struct{}    // capacity 1: there are new notices
	resting chan *attempt    // to idle workers
	workers sync.WaitGroup
	drained chan struct{}   // closed once nothing more is begun
	wire    context.Context // the context of the attempts
	giveUp  context.CancelFunc

	stepSize, claimSize          int  // how many results a step records, and how many deliveries it claims
	toTheEnd                     bool // the run ends when nothing is left to do
	pace                         pacing
	unread                       unread
	recording                    []Result // reused for the results that a step records
	behind                       bool     // the last step has left something that is due
	lastStep, lastScan, lastTrim time.Time
	pause                        time.Duration

	mu             sync.Mutex
	slots          *slots
	onWire         []*attempt
	done           []*attempt // their results must be recorded
	firstDone      time.Time
	restful        time.Time // the pump rests until then, and results wait for a step that is made anyway
	keptBack       bool      // other deliveries of a subscription wait until one of them is recorded
	provenDone     bool      // a result of a proven endpoint is among them
	provenAnswered time.Time // when the last result of a proven endpoint came
	back           []givenBack
	draining       bool
	outage         time.Time       // since when our own network is or was down
	changes        []networkChange // of the network's state, which must be reported
	notices        []sender.Notice // the next batch stores them

	// The slots that upkeep may fill from replays, and whether it has filled any.
	spare      spareSlots
	wantsSpare bool
	admitted   bool
}

type givenBack struct {
	a   *attempt
	due time.Time
}

func newPump(d *Dispatcher) *pump {
	eighth := max(1, d.cfg.Slots/8)
	proven := d.cfg.Slots - 2*eighth
	p := &pump{
		d: d, results: make(chan struct{}, 1), noticed: make(chan struct{}, 1), resting: make(chan *attempt), drained: make(chan struct{}),
		slots: newSlots(slotsConfig{
			places:          [sender.Lanes]int{sender.LaneNew: eighth, sender.LaneProven: proven, sender.LaneProbation: eighth},
			perSubscription: min(d.cfg.PerSubscription, proven),
			prefetch:        16,
			hardLimit:       2 * d.cfg.Slots,
			bodyBytes:       d.cfg.BodyBytes,
		}),
		outage: d.network.since(),
	}
	p.launch = p.toWorker
	p.upkeep = newUpkeep(p)
	p.present = newPresence(p)
	p.slots.probing = d.network.down(d.now()) // an earlier run may have found it down
	return p
}

// resize sets the size of the next step.
func (p *pump) resize() {
	p.stepSize, p.claimSize = stepSize, stepSize
	if large, ok := p.d.store.(LargeSteps); ok {
		if size := large.StepSize(); size > 0 {
			p.stepSize, p.claimSize = size, 2*size
		}
	}
}

// begin gives the attempts a context that outlives ctx, so that they are not cut
// off when a drain begins.
func (p *pump) begin(ctx context.Context) {
	p.wire, p.giveUp = context.WithCancel(context.WithoutCancel(ctx))
}

func (p *pump) run(ctx context.Context) {
	p.begin(ctx)
	working, end := p.outliving(ctx)
	defer end()
	for ctx.Err() == nil {
		switch wait, deaf := p.round(working); {
		case deaf:
			sleep(ctx, wait)
		case wait > 0:
			p.rest(ctx, wait)
		}
	}
}

// outliving returns a context for steps that ends Config.Timeout after ctx. If a step is
// cut off in its commit, nobody knows of the deliveries that it may have claimed, and the
// results that it may have recorded would be recorded again.
func (p *pump) outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		sleep(working, p.d.cfg.Timeout)
		cancel()
	})
	return working, func() {
		stop()
		cancel()
	}
}

// round makes a step, and says how long to wait before the next one. After a failure of the
// database deaf is set, and nothing may cut the wait short. Otherwise the wait is an upper
// bound.
func (p *pump) round(ctx context.Context) (wait time.Duration, deaf bool) {
	s, err := p.step(ctx)
	if err != nil && ctx.Err() == nil {
		p.pause = longerPause(p.pause)
		p.d.cfg.Logger.ErrorContext(ctx, "the database failed; the dispatcher tries again", "error", err, "in", p.pause)
		return p.pause, true
	}
	p.pause = 0
	if s.hinted && !s.busy() { // perhaps the hint was meant for upkeep
		p.upkeep.nudge()
	}
	if s.goOn {
		return 0, false
	}
	return p.after(&s), false
}

// once steps until nothing more is due.
func (p *pump) once(ctx context.Context) error {
	p.begin(ctx)
	p.toTheEnd = true
	working, end := p.outliving(ctx)
	defer end()
	for {
		s, err := p.step(working)
		if err != nil {
			return err
		}
		more, err := p.upkeep.once(ctx)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.mu.Lock()
		left := p.slots.held + len(p.done)
		p.mu.Unlock()
		if left == 0 && !s.busy() && !more {
			if again, err := p.upkeep.lookAgain(ctx); err != nil || !again {
				return err
			}
		}
		if left > 0 && !s.goOn && !more {
			p.rest(ctx, p.d.cfg.MaxIdle)
		}
	}
}

// stepped is the outcome of a step.
type stepped struct {
	events   int // that were expanded as a whole
	expanded int // the same, and deliveries of events that were expanded in part
	recorded int
	claimed  int
	hinted   bool // the step was asked for
	caughtUp bool // it has claimed all that was due, and there is room for more
	goOn     bool // there is more to do at once
	now, due time.Time
}

func (s *stepped) busy() bool { return s.expanded+s.recorded+s.claimed > 0 }

// step expands events, records the attempts that have ended, and claims and starts as many
// deliveries as there is room for.
func (p *pump) step(ctx context.Context) (stepped, error) {
	p.reportNetwork(ctx)
	p.reportProxies(ctx)
	if err := p.giveBack(ctx); err != nil {
		return stepped{}, err
	}
	p.resize()
	asked := p.d.now()
	s := stepped{hinted: p.pace.hinted}
	by := p.present.by(asked)
	p.mu.Lock()
	done, more := p.takeDone(asked)
	params := p.slots.claim()
	if asked.Sub(p.provenAnswered) < provenRest {
		paceUnproven(&params, len(done))
	}
	p.admitted = false
	p.mu.Unlock()
	p.pace.hinted, p.pace.caughtUp = false, false
	most := p.claimSize
	if len(p.unread.claims) > 0 {
		most = 0 // the claims put aside come first
	}
	slots := limitClaim(&params, most)
	events := max(p.stepSize, slots) // a delivery that can be claimed at once need not be stored as pending
	params.By, params.Token = by, p.d.cfg.Fence()
	expand := ExpandParams{Events: events, Deliveries: 2 * events, Whole: largestWhole, Part: p.part(), Convert: p.d.cfg.Convert}
	expanded, claims, err := p.exchange(ctx, expand, done, params)
	heard := p.d.now()
	p.present.claimed(&params, asked, err == nil && len(claims.Claimed) > 0, err)
	if err != nil {
		p.lastStep, p.pace.hinted = asked, s.hinted
		return s, err
	}
	s.events, s.expanded = expanded.Events, expanded.Events+expanded.Deliveries
	s.recorded, s.claimed = len(done), len(claims.Claimed)+len(claims.Interrupted)
	s.now, s.due = claims.Now, claims.NextDue
	p.behind = !s.due.IsZero() && !s.due.After(s.now)
	s.caughtUp = !expanded.More && !more && len(claims.Claimed) < slots && hasRoom(&params) && (s.due.IsZero() || s.due.After(s.now))
	if s.hinted || s.busy() { // otherwise it was a mere look, and a step may follow at once
		p.lastStep = asked
	}
	p.accept(p.converted(ctx, p.withoutUnread(claims.Claimed, asked, heard), asked), asked, heard)
	p.present.aside.Store(len(p.unread.claims) > 0)
	if err := p.readUnread(ctx); err != nil {
		return s, err
	}
	now := p.d.now()
	p.pace.look(&s, now)
	p.leaveSpare(slots-len(claims.Claimed), databaseClock{there: s.now, here: now})
	// The pump goes on expanding at once only while the wire could take the deliveries.
	s.goOn = more || len(claims.Claimed) == slots && slots >= flushResults || expanded.More && p.hungry()
	return s, nil
}

// part is how many deliveries of large events the next step makes. A delivery that is made
// and not claimed at once stands before later ones.
func (p *pump) part() int {
	if p.behind {
		return leastPart
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(leastPart, min(largestWhole, p.d.cfg.Slots-p.slots.held))
}

// hasRoom reports whether a claim had room in each lane.
func hasRoom(p *ClaimParams) bool {
	for _, l := range p.Lanes {
		if l.Slots <= 0 {
			return false
		}
	}
	return true
}

// takeDone returns the results to record next, and whether it leaves results that are due
// to be recorded. It takes as many as a step may claim, so that results do not pile up. It
// takes none if the step is a mere look, because a look costs less than a step that
// records, unless they would soon need a step of their own.
func (p *pump) takeDone(now time.Time) (done []*attempt, more bool) {
	if p.pace.looks(now) && !p.admitted && p.dueToRecord(now).After(now.Add(p.d.cfg.MaxDelay)) {
		return nil, false
	}
	n := min(len(p.done), p.claimSize)
	done, p.done = p.done[:n:n], p.done[n:]
	p.provenDone, p.keptBack = p.provenDone && len(p.done) > 0, p.keptBack && len(p.done) > 0
	return done, len(p.done) >= flushResults
}

// limitClaim bounds a claim as a whole, and returns how many deliveries it may claim. The
// proven lane has by far the most places, and takes what the other lanes leave. These get at
// most a quarter each: if a dispatcher has many slots, their places alone are more than a
// claim may take, and the lanes behind them would never get anything.
func limitClaim(p *ClaimParams, most int) (slots int) {
	for _, l := range [...]sender.Lane{sender.LaneNew, sender.LaneProbation} {
		p.Lanes[l].Slots = min(p.Lanes[l].Slots, most/4)
		slots += p.Lanes[l].Slots
	}
	proven := &p.Lanes[sender.LaneProven]
	proven.Slots = min(proven.Slots, most-slots)
	return slots + proven.Slots
}

// paceUnproven spreads the claims of the lanes that are not proven over several steps.
// recorded is the number of results that this step records.
func paceUnproven(p *ClaimParams, recorded int) {
	for _, l := range [...]sender.Lane{sender.LaneNew, sender.LaneProbation} {
		p.Lanes[l].Slots = min(p.Lanes[l].Slots, max(unprovenClaims, recorded/unprovenShare))
	}
}

// exchange expands, records and claims, and reports the expanded events and the recorded
// results.
func (p *pump) exchange(ctx context.Context, expand ExpandParams, done []*attempt, params ClaimParams) (Expanded, Claims, error) {
	params.Lease, params.Chance = p.d.cfg.Lease, p.d.cfg.Chance()
	p.recording = slices.Grow(p.recording[:0], len(done))[:len(done)]
	defer clear(p.recording)
	b := Batch{Decide: p.d.cfg.Policy.Decide, Announce: sender.Notice.Draft, Claim: params, Results: p.recording}
	p.mu.Lock()
	p.excuse(done)
	b.Notices = p.notices
	p.mu.Unlock()
	for i, a := range done {
		b.Results[i] = a.result // a copy, because a hook may have kept a.result
		b.Results[i].Published, b.Results[i].OwnNetwork = a.Event.CreatedAt, a.excused
	}
	began := p.d.now()
	bounded, end := p.d.within(ctx)
	expanded, claims, err := p.d.store.Step(bounded, expand, b)
	end()
	p.stepped(ctx, &Stepped{Duration: p.d.now().Sub(began), Err: err, Expanded: expanded, Results: len(b.Results), Claimed: len(claims.Claimed)})
	p.expanded(ctx, expanded)
	p.mu.Lock()
	if err != nil {
		p.done = append(done[:len(done):len(done)], p.done...)
		p.mu.Unlock()
		return Expanded{}, Claims{}, err
	}
	p.notices = p.notices[len(b.Notices):]
	for _, a := range done {
		p.slots.recorded(a)
	}
	p.mu.Unlock()
	for i, a := range done {
		p.report(ctx, &Recorded{Outcome: claims.Recorded[i], Target: a.Target, Event: a.Event, Result: b.Results[i]})
	}
	for i := range claims.Interrupted {
		p.report(ctx, &claims.Interrupted[i])
	}
	for _, n := range claims.Notices {
		p.notice(ctx, n)
	}
	return expanded, claims, nil
}

// stepped reports a step's transaction.
func (p *pump) stepped(ctx context.Context, s *Stepped) {
	hook := p.d.cfg.Hooks.Stepped
	if hook == nil {
		return
	}
	p.mu.Lock()
	for l := range s.OnWire {
		s.OnWire[l] = p.slots.lane[l].wire
	}
	p.mu.Unlock()
	p.d.guarded(ctx, "Stepped", func() { hook(ctx, *s) })
}

func (p *pump) expanded(ctx context.Context, x Expanded) {
	p.stats.Expanded += x.Events
	if hook := p.d.cfg.Hooks.Expanded; hook != nil && x.Events+x.Deliveries > 0 {
		p.d.guarded(ctx, "Expanded", func() { hook(ctx, x) })
	}
}

func (p *pump) report(ctx context.Context, r *Recorded) {
	log := p.d.cfg.Logger
	switch {
	case r.Lost:
		log.WarnContext(ctx, "a result changed nothing: its lease was lost before, or a step that seemed to fail has recorded it",
			"event_id", r.Event.ID, "subscription_id", r.Target.Subscription, "attempt", r.Result.Number)
	case r.Decision.Status == sender.StatusDeadLettered:
		p.stats.DeadLettered++
		if !r.Event.Notice {
			break // its notice is logged
		}
		log.WarnContext(ctx, "a delivery of a notice was dead-lettered", "event_id", r.Event.ID, "event_type", r.Event.Type,
			"subscription_id", r.Target.Subscription, "attempt", r.Result.Number, "error_class", string(r.Result.Class))
	case r.Result.Class == sender.ClassNone:
		p.stats.Delivered++
	default:
		p.stats.Failed++
	}
	if !r.Lost && r.Result.Class != sender.ClassNone {
		p.logFailure(ctx, r)
	}
	if hook := p.d.cfg.Hooks.Recorded; hook != nil {
		kept := *r // the hook may keep it; without a hook nothing is allocated
		p.d.guarded(ctx, "Recorded", func() { hook(ctx, &kept) })
	}
}

// notice reports a notice that was stored.
func (p *pump) notice(ctx context.Context, n sender.Notice) {
	p.d.cfg.Logger.WarnContext(ctx, noticeWords(n)+": "+n.Detail, "notice_id", n.ID, "kind", string(n.Kind), "subscriber_id", n.Subscriber,
		"subscription_id", n.Subscription, "delivery_id", n.Delivery)
	if hook := p.d.cfg.Hooks.Noticed; hook != nil {
		p.d.guarded(ctx, "Noticed", func() { hook(ctx, n) })
	}
	select {
	case p.noticed <- struct{}{}:
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
	bounded, end := p.d.within(ctx)
	err := p.d.store.Release(bounded, rs)
	end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.back = append(back, p.back...) // releasing a claim twice changes nothing
		return err
	}
	for _, b := range back {
		if b.a.sub != nil { // its event was read
			p.slots.forget(b.a)
		}
	}
	return nil
}

// hungry reports whether the wire could soon idle for want of claims.
func (p *pump) hungry() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.held < p.d.cfg.Slots
}
