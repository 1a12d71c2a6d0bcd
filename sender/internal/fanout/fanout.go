// Package fanout decides how much of which events one expansion makes, so that an event
// with very many deliveries does not hold up those behind it.
package fanout

import (
	"cmp"
	"slices"

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
	Count int  // of its deliveries that are not made yet, as far as they are known,
	All   bool // which are all
	// Object says what it is about, if that is known. It is not asked where nothing is large.
	Object func() (sender.Object, error)
}

// Make says how many more deliveries of an event are made.
type Make struct {
	At   int // in the order in which the candidates were added
	Most int
}

// Plan is what one expansion makes.
type Plan struct {
	Makes   []Make // in the order of the candidates
	Waiting int    // how many candidates wait for others
	More    bool   // something is left

	p     sender.ExpandParams
	added int
	made  int                    // of the small ones
	large []Make                 // with all that they may make
	about map[sender.Object]bool // what something waits for, or is large
}

// New begins a plan. What is not said of p is filled in: an event is expanded whole if a
// call has room for it.
func New(p sender.ExpandParams) *Plan {
	if p.Whole <= 0 {
		p.Whole = p.Deliveries
	}
	if p.Part <= 0 {
		p.Part = p.Deliveries
	}
	return &Plan{p: p}
}

// Look is up to how many deliveries of an event need be known.
func (p *Plan) Look() int { return max(p.p.Whole, p.p.Part) + 1 }

// Large tells whether an event is expanded in parts.
func (p *Plan) Large(c *Candidate) bool { return !c.All || c.Count > p.p.Whole }

// Add adds the next candidate: first those that are begun, then the others in the order of
// their commits. A small one is made whole, and a large one gets a part of what these
// leave. Nothing about an object is made before what comes before it about the same object
// is whole. Full tells that there is no room for it, nor for any behind it.
func (p *Plan) Add(c *Candidate) (full bool, err error) {
	large := p.Large(c)
	if large && p.about == nil {
		p.about = map[sender.Object]bool{}
	}
	var about sender.Object
	if p.about != nil && c.Object != nil {
		if about, err = c.Object(); err != nil {
			return false, err
		}
	}
	switch {
	case p.about[about]:
		p.Waiting++
	case large:
		p.about[about] = true
		p.large = append(p.large, Make{p.added, c.Count})
	case p.made > 0 && p.made+c.Count > p.p.Deliveries || len(p.Makes) == p.p.Events:
		p.More = true
		return true, nil
	default:
		p.made += c.Count
		p.Makes = append(p.Makes, Make{p.added, c.Count})
	}
	p.added++
	return false, nil
}

// Share says how much of the large ones is made, once all candidates are added.
func (p *Plan) Share() {
	some := p.large[:min(len(p.large), Begun)]
	left := max(p.p.Part-p.made, (p.p.Part+minimum-1)/minimum)
	p.Waiting += len(p.large) - len(some)
	p.More = p.More || p.Waiting > 0 || len(p.large) > 0
	for n, m := range some {
		if m.Most = min(m.Most, turns.Share(left, len(some)-n)); m.Most == 0 {
			p.Waiting++
			continue
		}
		left -= m.Most
		p.Makes = append(p.Makes, m)
	}
	slices.SortFunc(p.Makes, func(x, y Make) int { return cmp.Compare(x.At, y.At) })
}
