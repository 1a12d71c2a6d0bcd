package soak

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// order knows which versions were attempted at the slots. A first attempt is overtaken
// if a later version of its object was attempted before. That must never happen,
// whichever processes attempt them.
type order struct {
	last     map[line]*first
	excluded map[string]bool // events that were redelivered, put off, interrupted, or claimed by a process that did not learn of it
}

type line struct {
	slot   string
	object sender.Object
}

// first is the first attempt of the highest version that was attempted.
type first struct {
	event   string
	version int64
	signed  int64
}

func newOrder() order { return order{last: map[line]*first{}, excluded: map[string]bool{}} }

// attempted checks a first attempt against those before it, under the witness's lock.
// An attempt that began earlier was overtaken only on the wire, after its own time was
// over.
func (w *witness) attempted(slot string, c *content, signed int64) {
	o := &w.order
	at := line{slot, c.Object}
	last := o.last[at]
	if last == nil || last.version <= c.Version {
		o.last[at] = &first{c.ID, c.Version, signed}
		w.count("first attempts")
		return
	}
	switch {
	case signed < last.signed:
		w.count("first attempts that were overtaken on the wire")
	case o.excluded[c.ID] || o.excluded[last.event]:
		w.count("first attempts that may be overtaken")
	default:
		w.add("I14", "the first attempt of version %d of %v at %s, of event %s, is made after that of version %d, of event %s",
			c.Version, c.Object, slot, c.ID, last.version, last.event)
	}
}

// unheard notes the deliveries of a claim whose answer does not arrive. They are given
// back, and are perhaps attempted after deliveries behind them.
func (w *witness) unheard(claimed []dispatch.Claimed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range claimed {
		w.order.excluded[claimed[i].Event.ID] = true
	}
}

// putOff notes a delivery that a process has given back until later, because it could not
// read what it needs in time: a keyring, for example, while the machine is busy.
func (w *witness) putOff(p dispatch.PutOff) {
	w.count("deliveries put off: " + string(p.Reason))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.order.excluded[p.Delivery.Event.ID] = true
}
