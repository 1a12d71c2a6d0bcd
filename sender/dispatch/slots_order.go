package dispatch

import (
	"cmp"
	"hash/maphash"

	"github.com/surehook/surehook/sender"
)

// A chain consists of the first attempts about one object that are held for one
// subscription. Only the first of them is queued or on the wire. Each other attempt follows
// when the attempt before it has ended, whatever its result. So versions of an object are
// begun in their order while the endpoint takes them. A failed attempt waits for its retry.
// A retry waits for no other attempt and holds none back. An attempt that is given back
// takes along the attempts behind it, so that a claim finds all of them, in order again.
//
// A hash identifies a chain, because three look-ups of an object's names would cost as much
// as the rest of this bookkeeping. If the chain of another object has the same hash, an
// attempt goes without a chain, which happens to one pair of names in 2^64.
type chain uint64

func (s *slots) chainOf(a *attempt) chain {
	return chain(maphash.Comparable(s.seed, chainNames{a.sub.number, a.Event.Object}))
}

type chainNames struct {
	subscription int64
	object       sender.Object
}

// precedes reports whether b, which was claimed later, must not be begun before a.
func (a *attempt) precedes(b *attempt) bool {
	return a.Number == 1 && b.Number == 1 && a.Target.SubscriptionNo == b.Target.SubscriptionNo && a.Event.Object == b.Event.Object
}

func byOrder(a, b *attempt) int { return cmp.Compare(a.order, b.order) }

// follows puts a first attempt behind the others of its chain, and reports whether there
// are others.
func (s *slots) follows(a *attempt) bool {
	if a.Number != 1 {
		return false
	}
	a.chain = s.chainOf(a)
	first := s.chains[a.chain]
	if first == nil {
		s.chains[a.chain], a.last = a, a
		return false
	}
	if !first.precedes(a) {
		return false
	}
	first.last.next, first.last = a, a
	a.sub.behind++
	return true
}

// passOn queues the next attempt of a chain, because the attempt before it has ended.
func (s *slots) passOn(a *attempt) {
	if a.last == nil {
		return
	}
	if next := a.next; next != nil {
		s.chains[a.chain], next.last = next, a.last
		a.sub.behind--
		s.enqueue(next)
	} else {
		delete(s.chains, a.chain)
	}
}

// cut ends the chain that begins with first, and appends its other attempts to taken.
func (s *slots) cut(taken []*attempt, first *attempt) []*attempt {
	if first.last != nil {
		delete(s.chains, first.chain)
		taken = s.cutAfter(taken, first)
	}
	return taken
}

// cutAfter appends to taken the attempts behind the first of a chain. The chain goes on
// with the first alone.
func (s *slots) cutAfter(taken []*attempt, first *attempt) []*attempt {
	for next := first.next; next != nil; {
		taken = append(taken, next)
		first.sub.behind--
		next, next.next = next.next, nil
	}
	first.next, first.last = nil, first
	return taken
}

// cutBehind appends to taken all attempts of a subscription that are behind another one.
func (s *slots) cutBehind(taken []*attempt, sub *subSlots) []*attempt {
	if sub.behind == 0 {
		return taken
	}
	for _, first := range s.chains {
		if first.sub == sub {
			taken = s.cutAfter(taken, first)
		}
	}
	return taken
}

// usable is how many of its places a subscription can use with the deliveries that it
// holds. If many of them are about few objects, further leases would only grow old behind
// them.
func (sub *subSlots) usable() int {
	if sub.behind == 0 {
		return sub.places
	}
	return min(sub.places, sub.wire+len(sub.queue))
}
