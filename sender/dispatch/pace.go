package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// A step that finds out what there is to do, and commits, costs the same however much is
// in it. So it is pacing that decides what an event costs: of one that arrives by itself
// the claim makes a step, and its result waits for the next one, which another event
// causes a little later.

const (
	// Results are recorded together. If everything that is due was claimed they wait for
	// a step that is made anyway, for at most so long: a process that is killed repeats
	// what it has not recorded.
	recordWithin = 200 * time.Millisecond

	// If more is due, its claim waits for them: they are recorded once there are so many,
	// or so long after the first of them, or at once if nothing else is on the wire that
	// is about to answer.
	flushResults = 192
	flushAfter   = 5 * time.Millisecond

	// What is due and was not claimed, because another process had locked it, is looked
	// for again after this, and then ever later.
	stepGap = 2 * time.Millisecond

	// Whoever publishes without hints is found by looking. While something was found so
	// lately there is a look each MaxDelay, and then ever later.
	unhintedRest = time.Second

	maxErrorPause = 5 * time.Second
)

// pacing is what the pump knows of when the next step is worth its cost.
type pacing struct {
	caughtUp bool          // the last step has claimed all that was due, and there is room for more
	hinted   bool          // the next step was asked for
	lastHint time.Time     // when one was asked for last
	unhinted time.Time     // when events were found last that nobody had hinted at
	idle     time.Duration // before the next look
	dueAt    time.Time     // when something is due next, as far as is known
}

// look takes in what a step has found.
func (c *pacing) look(s *stepped, now time.Time) {
	c.caughtUp, c.dueAt = s.caughtUp, now.Add(s.due.Sub(s.now))
	if s.due.IsZero() {
		c.dueAt = time.Time{}
	}
}

// looks reports whether a step that is made now is a mere look: nothing is known of that it
// would do.
func (c *pacing) looks(now time.Time) bool {
	return c.caughtUp && !c.hinted && (c.dueAt.IsZero() || now.Before(c.dueAt))
}

// after says how long to wait after a step, unless something happens before.
func (p *pump) after(s *stepped) time.Duration {
	c, now := &p.pace, p.d.now()
	cfg := &p.d.cfg
	if s.expanded > 0 && !s.hinted && now.Sub(c.lastHint) > unhintedRest {
		c.unhinted = now
	}
	switch {
	case !s.caughtUp && s.busy(): // something may be locked just now
		c.idle = stepGap
	case !s.caughtUp:
		c.idle = max(stepGap, 2*c.idle)
	case now.Sub(c.unhinted) < unhintedRest:
		c.idle = cfg.MaxDelay
	case s.hinted || s.busy():
		c.idle = cfg.MaxIdle
	default:
		c.idle = max(cfg.MaxDelay, 2*c.idle)
	}
	c.idle = min(c.idle, cfg.MaxIdle)
	wait := c.idle
	if due := s.due.Sub(s.now); due > 0 {
		wait = min(wait, max(due, p.lastStep.Add(cfg.MaxDelay).Sub(now)))
	}
	if p.wired() { // what begins to hang is to be noticed, however long it may rest
		wait = min(wait, slowScanEvery)
	}
	return wait
}

// rest waits until a step is worth its cost.
func (p *pump) rest(ctx context.Context, most time.Duration) {
	now := p.d.now()
	at := p.recordAt(now, now.Add(most))
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-p.d.store.Woken():
			at = p.hint(at)
		case <-p.results:
			at = p.recordAt(p.d.now(), at)
		}
		wait := at.Sub(p.d.now())
		if wait <= 0 {
			return
		}
		timer.Reset(wait)
	}
}

// hint is when to make a step that was to be made at until, now that something may be due.
func (p *pump) hint(until time.Time) time.Time {
	p.pace.hinted, p.pace.lastHint = true, p.d.now()
	if at := p.lastStep.Add(p.d.cfg.MaxDelay); at.Before(until) {
		return at
	}
	return until
}

// recordAt is when to make a step that was to be made at until, now that there is
// something to record, to give back or to claim.
func (p *pump) recordAt(now, until time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restful = time.Time{}
	switch {
	case len(p.back) > 0 || p.admitted:
		return now
	case len(p.done) > 0:
		if at := p.dueToRecord(now); at.Before(until) {
			until = at
		}
	}
	if p.pace.caughtUp && !p.toTheEnd {
		p.restful = until
	}
	return until
}

// dueToRecord is when the results that wait are to be recorded.
func (p *pump) dueToRecord(now time.Time) time.Time {
	switch {
	case len(p.done) >= flushResults || p.toTheEnd && p.nothingNears():
		return now
	case p.pace.caughtUp && !p.keptBack && !p.toTheEnd:
		return p.firstDone.Add(p.recordWithin())
	case p.nothingNears():
		return now
	}
	return p.firstDone.Add(flushAfter)
}

// recordWithin is how long results wait for a step that is made anyway. An attempt is begun
// only if it ends a sixth of the lease before that does.
func (p *pump) recordWithin() time.Duration {
	return min(max(recordWithin, p.d.cfg.MaxDelay+p.d.cfg.MaxDelay/4), p.d.cfg.Lease/12)
}

// mayRest reports whether a result that has come leaves the pump's rest as long as it is.
// To be woken, only to set a timer, costs as much as the signature does.
func (p *pump) mayRest() bool {
	return !p.draining && !p.keptBack && !p.restful.IsZero() && len(p.done) < flushResults && !p.firstDone.Add(p.recordWithin()).Before(p.restful)
}

// nothingNears reports whether no result is to be expected soon that could be recorded
// with those that wait. What proven endpoints have answered does not wait for others
// that perhaps never answer.
func (p *pump) nothingNears() bool {
	return p.slots.wire == 0 || p.provenDone && p.slots.lane[sender.LaneProven].wire == 0
}

// longerPause is how long to leave a failing database alone, after one of that long.
func longerPause(pause time.Duration) time.Duration {
	return min(max(2*pause, 50*time.Millisecond), maxErrorPause)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
