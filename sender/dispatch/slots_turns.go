package dispatch

import (
	"slices"

	"github.com/surehook/surehook/sender"
)

// subscriberSlots is what all subscriptions of a subscriber have together.
type subscriberSlots struct {
	number int64
	subs   int   // how many of slots.subs are its
	wire   int   // slow attempts included
	bytes  int64 // of the held bodies; a body counts for the subscriber that held it first
	lane   [sender.Lanes]struct {
		wire, held int
		ready      []*subSlots // subscriptions with queued deliveries, in the order of their turns
	}
}

// subscriber returns the account of a subscriber, for one more of its subscriptions.
func (s *slots) subscriber(number int64) *subscriberSlots {
	by := s.by[number]
	if by == nil {
		by = &subscriberSlots{number: number}
		s.by[number] = by
	}
	by.subs++
	return by
}

// fullFor reports whether a subscriber has as many attempts on the wire, slow ones included,
// as the others leave free. Attempts that hang leave the places of their lanes, and could
// otherwise take the whole wire.
func (s *slots) fullFor(by *subscriberSlots) bool { return s.wire+by.wire >= s.cfg.hardLimit }

// enqueue puts a delivery into the queue of its subscription, where it may go.
func (s *slots) enqueue(a *attempt) {
	sub := a.sub
	i, _ := slices.BinarySearchFunc(sub.queue, a, byOrder)
	sub.queue = slices.Insert(sub.queue, i, a)
	s.offer(sub)
}

// offer stands a subscription in line, if it has something queued, and its subscriber.
func (s *slots) offer(sub *subSlots) {
	if sub.ready || len(sub.queue) == 0 {
		return
	}
	sub.ready = true
	lane, own := &s.lane[sub.lane], &sub.subscriber.lane[sub.lane]
	if len(own.ready) == 0 {
		lane.ready = append(lane.ready, sub.subscriber)
	}
	own.ready = append(own.ready, sub)
}

// withdraw takes a subscription out of line.
func (s *slots) withdraw(sub *subSlots) {
	if !sub.ready {
		return
	}
	sub.ready = false
	lane, own := &s.lane[sub.lane], &sub.subscriber.lane[sub.lane]
	own.ready = without(own.ready, sub)
	if len(own.ready) == 0 {
		lane.ready = without(lane.ready, sub.subscriber)
	}
}

// serve takes the next delivery of the jth ready subscription of the ith ready subscriber of
// a lane, and sends both to the tail.
func (s *slots) serve(l sender.Lane, i, j int) *attempt {
	lane := &s.lane[l]
	by := lane.ready[i]
	own := &by.lane[l]
	sub := own.ready[j]
	a := sub.queue[0]
	sub.queue = sub.queue[1:]
	own.ready = slices.Delete(own.ready, j, j+1)
	if len(sub.queue) > 0 {
		own.ready = append(own.ready, sub)
	} else {
		sub.ready = false
	}
	lane.ready = slices.Delete(lane.ready, i, i+1)
	if len(own.ready) > 0 {
		lane.ready = append(lane.ready, by)
	}
	return a
}

// without removes an element that a list has once.
func without[E comparable](list []E, e E) []E {
	i := slices.Index(list, e)
	return slices.Delete(list, i, i+1)
}

func (s *slots) move(sub *subSlots, to sender.Lane) {
	if sub.lane != to {
		s.withdraw(sub)
		sub.lane = to
		s.offer(sub)
	}
}
