// Package fanout decides how much of which events one expansion makes, so that an event
// with very many deliveries does not hold up those behind it.
package fanout

import (
	"github.com/surehook/surehook/internal/turns"
	"github.com/surehook/surehook/sender"
)

const (
	// Begun is how many events may be expanded in parts at a time. The deliveries of a call
	// are shared between them; further large ones wait.
	Begun = 8

	// Waiting is how many events may wait, behind large ones about the same objects or for
	// their turn among these, and be passed over. Where more wait, those behind them wait
	// too, until a large one is whole.
	Waiting = 1024

	// minimum is what part of ExpandParams.Part large events get, however many the small
	// ones make: else they might never end.
	minimum = 4
)

// Candidate is an event that may be expanded now.
type Candidate struct {
	Count  int  // of its deliveries that are not made yet, as far as they are known,
	All    bool // which are all
	Object sender.Object
}

// Make is an event of which so many more deliveries are made.
type Make struct {
	At   int // in the list of candidates
	Most int
}

// Plan is one expansion: what is made, in this order.
type Plan struct {
	Makes   []Make
	Waiting int  // how many candidates wait for others
	More    bool // something is left
}

// Params are a call's, with all that is not said filled in.
type Params struct{ sender.ExpandParams }

// New fills in what is not said: an event is expanded whole if a call has room for it.
func New(p sender.ExpandParams) Params {
	if p.Whole <= 0 {
		p.Whole = p.Deliveries
	}
	if p.Part <= 0 {
		p.Part = p.Deliveries
	}
	return Params{p}
}

// Look is up to how many deliveries of an event need be known.
func (p *Params) Look() int { return max(p.Whole, p.Part) + 1 }

// Large tells whether an event is expanded in parts.
func (p *Params) Large(c *Candidate) bool { return !c.All || c.Count > p.Whole }

// AnyLarge tells whether any of some events is. Only then do their objects matter.
func (p *Params) AnyLarge(all []Candidate) bool {
	for i := range all {
		if p.Large(&all[i]) {
			return true
		}
	}
	return false
}

// Plan goes through the candidates in their order: those that are begun, then the others
// in the order of their commits. Small ones are made whole; what large ones are left with
// is shared between them. Nothing about an object is made before what comes before it
// about the same object is whole.
func (p *Params) Plan(all []Candidate) (plan Plan) {
	var large []int
	about := map[sender.Object]bool{} // that something waits for, or is made in parts of
	made := 0
	for i := range all {
		c := &all[i]
		if len(about) > 0 && about[c.Object] {
			plan.Waiting++
			continue
		}
		if p.Large(c) {
			about[c.Object] = true
			large = append(large, i)
			continue
		}
		if made > 0 && made+c.Count > p.Deliveries || len(plan.Makes) == p.Events {
			plan.More = true
			break
		}
		made += c.Count
		plan.Makes = append(plan.Makes, Make{i, c.Count})
	}
	most := min(len(large), Begun)
	plan.Waiting += len(large) - most
	left := max(p.Part-made, (p.Part+minimum-1)/minimum)
	for n, i := range large[:most] {
		share := min(turns.Share(left, most-n), all[i].Count)
		if share == 0 {
			plan.Waiting++
			continue
		}
		left -= share
		plan.Makes = append(plan.Makes, Make{i, share})
	}
	plan.More = plan.More || plan.Waiting > 0 || len(large) > 0
	return plan
}
