// Package fanout decides how many deliveries one expansion makes, and of which events, so
// that an event with very many deliveries does not hold up those behind it.
package fanout

import (
	"cmp"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// Begun bounds how many large events are expanded in parts at a time. They
	// share the deliveries of a call; further large events wait.
	Begun = 8

	// Waiting bounds how many events may wait, for a large event about the same
	// object or for a place among the large ones, while the events behind them go
	// on. If more wait, the events behind them wait too, until a large one is
	// whole.
	Waiting = 1024

	// minimum: large events get at least one minimum-th of dispatch.ExpandParams.Part,
	// however many deliveries the small ones make. Else the large ones might never
	// end.
	minimum = 4
)

// Candidate is an event that may be expanded now.
type Candidate struct {
	Count int  // its deliveries that are not made yet, as far as they are known
	All   bool // Count is all of them
	// Object returns the object that the event is about; nil: it is not known. It
	// is called only if an event is large.
	Object func() (sender.Object, error)
}

// Make is the number of deliveries that an expansion makes of one event.
type Make struct {
	At   int // in the order in which the candidates were added
	Most int
}

// Plan has the deliveries that one expansion makes.
type Plan struct {
	Makes   []Make // in the order of the candidates
	Waiting int    // how many candidates wait for others
	More    bool   // something remains

	p     dispatch.ExpandParams
	added int
	made  int                    // of the small ones
	large []Make                 // with the deliveries that are not made yet
	about map[sender.Object]bool // objects of large events and of those that wait
}

// New begins a plan. If p does not bound Whole and Part, an event is expanded whole if
// one call has room for it.
func New(p dispatch.ExpandParams) *Plan {
	if p.Whole <= 0 {
		p.Whole = p.Deliveries
	}
	if p.Part <= 0 {
		p.Part = p.Deliveries
	}
	return &Plan{p: p}
}

// Look bounds the deliveries of an event that the plan needs to know.
func (p *Plan) Look() int { return max(p.p.Whole, p.p.Part) + 1 }

// Large tells whether an event is expanded in parts.
func (p *Plan) Large(c *Candidate) bool { return !c.All || c.Count > p.p.Whole }

// Add adds the next candidate. The events that are begun come first, then the others in
// the order of their commits. A small event is expanded whole; the large ones share the
// rest of the call. An event is expanded only once all earlier events about its object
// are whole. full tells that the call has no room for this event, nor for those behind
// it.
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

// Share gives the large events their parts, once all candidates are added.
func (p *Plan) Share() {
	some := p.large[:min(len(p.large), Begun)]
	remaining := max(p.p.Part-p.made, (p.p.Part+minimum-1)/minimum)
	p.Waiting += len(p.large) - len(some)
	p.More = p.More || len(p.large) > 0 // all that wait do so for a large one
	for n, m := range some {
		if m.Most = min(m.Most, rules.Share(remaining, len(some)-n)); m.Most == 0 {
			p.Waiting++
			continue
		}
		remaining -= m.Most
		p.Makes = append(p.Makes, m)
	}
	slices.SortFunc(p.Makes, func(x, y Make) int { return cmp.Compare(x.At, y.At) })
}
