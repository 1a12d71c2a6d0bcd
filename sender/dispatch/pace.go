package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// A step that looks for work and commits costs the same however much is in it. So pacing
// decides the cost of an event: the claim of an event that arrives alone makes a step, and
// its result waits for the next step, which another event causes a little later.

const (
	// Results are recorded together. If everything that is due was claimed, they wait for a
	// step that is made anyway, but no longer than this: after a kill, the attempts without
	// a recorded result are repeated.
	recordWithin = 200 * time.Millisecond

	// If more deliveries are due, their claim waits for the results. These are recorded
	// once there are flushResults of them, or flushAfter after the first of them, or at
	// once if no other attempt on the wire is about to answer.
	flushResults = 192
	flushAfter   = 5 * time.Millisecond

	// If another process had locked deliveries that are due, they were not claimed. The
	// pump looks for them again after this gap, and then after ever longer gaps.
	stepGap = 2 * time.Millisecond

	// The pump must look for events that are published without hints. For this long after
	// it has found one it looks each MaxDelay, and then ever more seldom.
	unhintedRest = time.Second
	// A step can find an event before its hint comes, which other processes gather for some
	// milliseconds. If no hint has come for this long after a step, what it found had none.
	hintLate = 30 * time.Millisecond

	maxErrorPause = 5 * time.Second
)

// pacing tells when the next step is worth its cost.
type pacing struct {
	caughtUp bool          // the last step has claimed all that was due, and there is room for more
	hinted   bool          // the next step was asked for
	lastHint time.Time     // when one was asked for last
	unhinted time.Time     // when events without a hint were found last
	early    time.Time     // when the first events were found whose hint may come yet; zero if there are none
	probed   time.Time     // when a look was planned that may find events without a hint
	idle     time.Duration // before the next look
	dueAt    time.Time     // when something is due next, as far as is known
}

// look takes in the findings of a step.
func (c *pacing) look(s *stepped, now time.Time) {
	c.caughtUp, c.dueAt = s.caughtUp, now.Add(s.due.Sub(s.now))
	if s.due.IsZero() {
		c.dueAt = time.Time{}
	}
}

// looks reports whether a step that is made now is a mere look, because no work for it is
// known.
func (c *pacing) looks(now time.Time) bool {
	return c.caughtUp && !c.hinted && (c.dueAt.IsZero() || now.Before(c.dueAt))
}

// found takes in whether a step has expanded events that nobody hinted at.
func (c *pacing) found(s *stepped, now time.Time) {
	switch {
	case s.expanded > 0 && !s.hinted && now.Sub(c.lastHint) > unhintedRest:
		c.unhinted, c.early = now, now
	case !c.early.IsZero() && now.Sub(c.early) >= hintLate:
		c.unhinted, c.early = now, time.Time{}
	case s.expanded > 0 && !s.hinted && c.early.IsZero():
		c.early = now
	}
}

// probe reports whether it is time for a look that nobody asked for. Some producers may
// give hints and others none, so the steps that the hints cause find the events of all. One
// hint for several events is a sign of that.
func (c *pacing) probe(s *stepped, now time.Time) bool {
	if !s.hinted || s.events < 2 || now.Sub(c.probed) < unhintedRest {
		return false
	}
	c.probed = now
	return true
}

// after says how long to wait after a step, unless something happens before.
func (p *pump) after(s *stepped) time.Duration {
	c, now := &p.pace, p.d.now()
	cfg := &p.d.cfg
	c.found(s, now)
	switch {
	case !s.caughtUp && s.busy(): // something may be locked just now
		c.idle = stepGap
	case !s.caughtUp:
		c.idle = max(stepGap, 2*c.idle)
	case now.Sub(c.unhinted) < unhintedRest || c.probe(s, now):
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
	return wait
}

// rest waits until a step is worth its cost. Meanwhile it looks for attempts that take long,
// for which the database is not needed.
func (p *pump) rest(ctx context.Context, most time.Duration) {
	now := p.d.now()
	at := p.recordAt(now, now.Add(most))
	timer := time.NewTimer(p.scanBefore(at).Sub(now))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.d.store.Woken():
			at = p.hint(at)
		case <-p.results:
			at = p.recordAt(p.d.now(), at)
		}
		now := p.d.now()
		if !at.After(now) || p.rescan(now) {
			return
		}
		timer.Reset(p.scanBefore(at).Sub(now))
	}
}

// hint is when to make a step that was planned for until, because something may be due now.
func (p *pump) hint(until time.Time) time.Time {
	now, from := p.d.now(), p.lastStep
	if p.gathers(now) {
		from = now
	}
	p.pace.hinted, p.pace.lastHint = true, now
	if now.Sub(p.pace.early) < hintLate {
		if p.pace.unhinted.Equal(p.pace.early) {
			p.pace.unhinted = time.Time{}
		}
		p.pace.early = time.Time{}
	}
	if at := from.Add(p.d.cfg.MaxDelay); at.Before(until) {
		return at
	}
	return until
}

// gathers reports whether what was just hinted at waits for others, although the last step
// is long ago. If steps only kept their distance, events that come about MaxDelay apart would
// each make a step, and wait for it. It pays if others are likely to come in time.
func (p *pump) gathers(now time.Time) bool {
	most := p.d.cfg.MaxDelay
	return most > defaultMaxDelay && now.Sub(p.pace.lastHint) < 2*most
}

// recordAt is when to make a step that was planned for until, if there is something to
// record, to give back or to claim.
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

// dueToRecord is when the waiting results must be recorded.
func (p *pump) dueToRecord(now time.Time) time.Time {
	switch {
	case len(p.done) >= flushResults:
		return now
	case p.pace.caughtUp && !p.keptBack && !p.toTheEnd:
		return p.firstDone.Add(p.recordWithin())
	case p.nothingNears():
		return now
	}
	return p.firstDone.Add(flushAfter)
}

// recordWithin is how long results wait for a step that is made anyway. An attempt is begun
// only if it ends a sixth of the lease before the lease does.
func (p *pump) recordWithin() time.Duration {
	return min(max(recordWithin, p.d.cfg.MaxDelay+p.d.cfg.MaxDelay/4), p.d.cfg.Lease/12)
}

// mayRest reports whether the pump may go on resting although a result has come. Waking it
// only to set a timer costs as much as the signature does.
func (p *pump) mayRest() bool {
	return !p.draining && !p.keptBack && !p.restful.IsZero() && len(p.done) < flushResults && !p.firstDone.Add(p.recordWithin()).Before(p.restful)
}

// nothingNears reports whether no result can be expected soon that could be recorded with
// the waiting ones. The answers of proven endpoints do not wait for endpoints that perhaps
// never answer.
func (p *pump) nothingNears() bool {
	return p.slots.wire == 0 || p.provenDone && p.slots.lane[sender.LaneProven].wire == 0
}

// longerPause is how long to leave a failing database alone, after a pause of that length.
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
