package simulation

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// decided is a decision in a batch.
type decided struct {
	result   sender.Result
	decision sender.Decision
}

// exchange returns the effects to record for a batch, and a batch that notes its
// decisions. With those the effects can be found if the answer is lost.
func (p *process) exchange(b sender.Batch) (effects[sender.Claims], sender.Batch) {
	var all []decided
	b.Results = p.w.ofIdle(b.Results)
	if decide := b.Decide; decide != nil {
		b.Decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
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
	return effects[sender.Claims]{
		link:    link,
		known:   func(c sender.Claims) { p.exchanged(&b, &c) },
		unknown: func() { p.exchanged(&b, p.learn(&b, all)) },
	}, b
}

// learn finds out the effects of a committed batch. Results with decisions were
// recorded or found lost, and new leases were claimed.
func (p *process) learn(b *sender.Batch, all []decided) *sender.Claims {
	w := p.w
	c := &sender.Claims{Recorded: make([]sender.Outcome, len(b.Results))}
	for i := range c.Recorded {
		c.Recorded[i].Lost = true
	}
	for i := range all {
		d := &all[i]
		d.decision.Status = w.became(d)
		if d.result.Class == sender.ClassInterrupted {
			c.Interrupted = append(c.Interrupted, sender.Recorded{Outcome: sender.Outcome{Decision: d.decision}, Result: d.result, Target: &sender.Target{}})
			continue
		}
		for j := range b.Results {
			if r := &b.Results[j]; r.Key == d.result.Key && r.Token == d.result.Token {
				c.Recorded[j] = sender.Outcome{Decision: d.decision}
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
