package simulation

import "github.com/surehook/surehook/dedup"

// I14: a process begins no first attempt while one about the same object, to the same
// subscription, is under way that it has begun itself.

// turn names the attempts that are made one after the other.
type turn struct {
	object dedup.Object
	sub    *subscription
}

func (p *post) turn() turn { return turn{p.d.event.object, p.d.sub} }

// begins holds an attempt against those that the process has under way.
func (p *process) begins(x *post) {
	if x.number != 1 {
		return
	}
	if other := p.firsts[x.turn()]; other != nil {
		p.w.violated("I14", "the first attempt of %s is begun while that of %s is under way, about the same object", x.d.name, other.d.name)
	}
	p.firsts[x.turn()] = x
	p.w.counts["first attempt"]++
}

// ends is that the process knows what came of an attempt.
func (p *process) ends(x *post) {
	if p.firsts[x.turn()] == x {
		delete(p.firsts, x.turn())
	}
}
