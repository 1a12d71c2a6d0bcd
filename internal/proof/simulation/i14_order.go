package simulation

import "github.com/surehook/surehook/dedup"

// I14: no first attempt begins while another one about the same object, to the same
// subscription, is under way. This holds between processes while each holds its lease,
// and within a process whatever happens to the leases.

// turn names the attempts that are made one after the other.
type turn struct {
	object dedup.Object
	sub    *subscription
}

func (p *post) turn() turn { return turn{p.d.event.object, p.d.sub} }

// begins checks an attempt against the attempts under way.
func (p *process) begins(x *post) {
	if x.number != 1 {
		return
	}
	for _, other := range p.w.processes {
		first := other.firsts[x.turn()]
		if first == nil || other != p && !(first.leased() && x.leased()) {
			continue
		}
		p.w.violated("I14", "the first attempt of %s is begun by process %d while that of %s by process %d is under way, about the same object",
			x.d.name, p.no, first.d.name, other.no)
	}
	p.firsts[x.turn()] = x
	p.w.counts["first attempt"]++
}

// leased tells whether its process holds the lease of an attempt.
func (p *post) leased() bool {
	l := p.d.leased
	return l != nil && l.token == p.token && l.until.After(p.d.w.now)
}

// ends notes that the process knows the outcome of an attempt.
func (p *process) ends(x *post) {
	if p.firsts[x.turn()] == x {
		delete(p.firsts, x.turn())
	}
}
