package simulation

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// decided is a decision in a batch.
type decided struct {
	result   dispatch.Result
	decision dispatch.Decision
}

// exchange returns the effects to record for a batch, and a batch that notes its
// decisions. With those the effects can be found if the answer is lost.
func (p *process) exchange(b dispatch.Batch) (effects[dispatch.Claims], dispatch.Batch) {
	var all []decided
	b.Results = p.w.ofIdle(b.Results)
	if decide := b.Decide; decide != nil {
		b.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			d := decide(l, h, r, now)
			if p.w.links != nil {
				all = append(all, decided{r, d})
			}
			if known := p.w.byKey[r.Key]; known != nil {
				known.health = h
			}
			return d
		}
	}
	link := brokenLink
	if len(b.Results) > 0 {
		link = brokenWork
	}
	return effects[dispatch.Claims]{
		link:    link,
		known:   func(c dispatch.Claims) { p.exchanged(&b, &c) },
		unknown: func() { p.exchanged(&b, p.learn(&b, all)) },
	}, b
}

// learn finds out the effects of a committed batch. Results with decisions were
// recorded or found lost, and new leases were claimed.
func (p *process) learn(b *dispatch.Batch, all []decided) *dispatch.Claims {
	w := p.w
	c := &dispatch.Claims{Recorded: make([]dispatch.Outcome, len(b.Results))}
	for i := range c.Recorded {
		c.Recorded[i].Lost = true
	}
	for i := range all {
		d := &all[i]
		d.decision.Status = w.became(d)
		if d.result.Class == sender.ClassInterrupted {
			c.Interrupted = append(c.Interrupted, dispatch.Recorded{Outcome: dispatch.Outcome{Decision: d.decision}, Result: d.result, Target: &dispatch.Target{}})
			continue
		}
		for j := range b.Results {
			if r := &b.Results[j]; r.Key == d.result.Key && r.Token == d.result.Token {
				c.Recorded[j] = dispatch.Outcome{Decision: d.decision}
				break // a second one comes too late
			}
		}
	}
	leases, err := w.links.leases(w.ctx)
	w.fail(err)
	for i := range leases {
		l := &leases[i]
		if d := w.byKey[l.Key]; d == nil || d.leased == nil || d.leased.token != l.Token {
			c.Claimed = append(c.Claimed, *l)
		}
	}
	return c
}

// became is the status after a decision. The store may decide otherwise: a cancelled
// delivery stays cancelled.
func (w *world) became(d *decided) sender.Status {
	known := w.byKey[d.result.Key]
	if known == nil {
		return d.decision.Status
	}
	got, err := w.history.Delivery(w.ctx, known.id)
	w.fail(err)
	if terminal(got.Status) {
		return got.Status
	}
	return d.decision.Status
}
