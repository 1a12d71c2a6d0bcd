package dispatch

import (
	"cmp"
	"hash/maphash"

	"github.com/surehook/surehook/sender"
)

// A chain is the first attempts about one object that are held for one subscription. Only
// the first of them is queued or on the wire: each of the others follows when the one
// before it has ended, whatever came of it. So versions of an object are begun in their
// order while the endpoint takes them; one that failed waits for its retry, and retries
// wait for nobody and hold nobody back. What is given back takes with it what is behind it,
// so that a claim finds all of it, in order again.
//
// It is known by a hash, since three look-ups of an object's names would cost as much as
// the rest of this bookkeeping. Where another chain has the same one, an attempt goes
// without: two in 2^64 names do.
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
// are any.
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

// passOn has the next of an attempt's chain queued, now that it has ended.
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
	a.next, a.last = nil, nil
}

// cut ends the chain that an attempt is the first of, and appends the others of it to
// taken.
func (s *slots) cut(taken []*attempt, first *attempt) []*attempt {
	if first.last != nil {
		delete(s.chains, first.chain)
		taken = s.cutAfter(taken, first)
		first.last = nil
	}
	return taken
}

// cutAfter appends to taken what is behind the first of a chain, which goes on without.
func (s *slots) cutAfter(taken []*attempt, first *attempt) []*attempt {
	for next := first.next; next != nil; {
		taken = append(taken, next)
		first.sub.behind--
		next, next.next = next.next, nil
	}
	first.next, first.last = nil, first
	return taken
}

// cutBehind appends to taken what a subscription has behind others.
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

// usable is how many of its places a subscription can use with what it holds: where much
// of it is about few objects, to claim more would only make leases grow old behind them.
func (sub *subSlots) usable() int {
	if sub.behind == 0 {
		return sub.places
	}
	return min(sub.places, sub.wire+len(sub.queue))
}
