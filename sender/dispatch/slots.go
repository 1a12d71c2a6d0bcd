package dispatch

import (
	"hash/maphash"
	"net/url"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// slots shares the attempts in flight of one dispatcher between subscriptions. It is plain
// bookkeeping over values. It has no clock, no locks and no I/O, so that its rules can be
// read and tested by themselves. The pump's mu guards it.
//
// A claimed delivery waits in its subscription's queue, and then is on the wire. It is
// "held" all that time. Then its result waits to be recorded; deliveries that are claimed
// meanwhile keep the wire busy.
//
//   - Each lane has its own places on the wire, so that new subscriptions, and slow and
//     failing ones, leave room for the rest.
//   - A subscriber gets at most half of a lane's places, so that a subscriber whose
//     endpoints all stall leaves room for the others. Of all attempts that may be on the
//     wire, and of the memory for bodies, it gets at most half of what the others leave.
//   - Subscribers take turns, and each subscriber's subscriptions do.
//   - A subscription starts with few places, and earns one more with each fast answer while
//     it could use it, up to a maximum. A failure halves them, and a slow answer leaves one.
//   - A subscription's own Settings.MaxInFlight bounds its places further.
//   - A subscription that fails several times in a row is on probation until it answers
//     fast again. A subscription that keeps losing the places that it earned stays on
//     probation for longer each time (see probation).
//   - An attempt that has been on the wire for longer than a fast answer takes moves to the
//     probation lane's account, and stays on the wire. So a proven endpoint that begins to
//     hang gives its places back after that time, and not only after the attempt's timeout.
//   - The last eighth of the proven lane's places, and of the deliveries that may be held
//     for them, is for subscribers that use none of them, because the subscribers at work
//     may all become slow together.
//   - The dispatcher claims more deliveries for proven subscriptions than they have places,
//     so that the wire does not idle while the database works.
//   - First attempts about one object are made one after the other, in the order in which
//     they were claimed (see chain).
type slots struct {
	cfg  slotsConfig
	lane [sender.Lanes]laneSlots
	subs map[int64]*subSlots        // by subscription number
	by   map[int64]*subscriberSlots // by subscriber number
	wire int
	held int
	body bodies // of the held deliveries
	age  int64  // counts the calls of trim
	// short counts the claims while bodies took more than half of the memory.
	short int

	chains map[chain]*attempt // the first attempt of each; it is queued, or on the wire
	seed   maphash.Seed       // of the chains' hashes
	claims int64              // counts the calls of add

	crowded bool // a subscription that was moved to probation has more waiting than places
	probing bool // our own network is down: probePlaces apply instead of cfg.places
}

type slotsConfig struct {
	places          [sender.Lanes]int // on the wire, by lane
	perSubscription int               // places that a subscription can earn
	prefetch        int               // deliveries that a proven subscription may hold for each place
	hardLimit       int               // attempts on the wire in all, slow ones included
	bodyBytes       int64             // of the bodies of held deliveries; 0: no limit
}

type laneSlots struct {
	wire  int
	held  int
	bytes int64              // of the bodies of held deliveries; a shared body counts for each of them
	ready []*subscriberSlots // subscribers with queued deliveries, in the order of their turns
}

type subSlots struct {
	number     int64
	subscriber *subscriberSlots
	lane       sender.Lane
	places     int
	most       int // the places that it can earn
	wire       int
	held       int
	unrecorded int        // results that the lane in the database does not take into account yet
	queue      []*attempt // in the order of the claims
	behind     int        // deliveries that are held, but neither queued nor on the wire: see chain
	ready      bool       // in the ready list of its subscriber in its lane
	used       int64      // the age at which it last got a delivery
	failures   int        // in a row
	probation  probation
}

// attempt is a claimed delivery in the hands of the dispatcher.
type attempt struct {
	Claimed
	url *url.URL // nil if it cannot be parsed
	// elsewhere: url is the event's own, and of another origin than the subscription's.
	elsewhere bool

	sub     *subSlots
	account sender.Lane // the lane whose places it takes
	dial    post.Dialing
	asked   time.Time // when the claim was asked for, on the local clock; the lease began no earlier
	claimed time.Time // when the claim was answered, on the local clock
	started time.Time // on the local clock; zero while it is queued
	nth     int       // its index in the pump's onWire
	slow    bool
	order   int64 // its number in the order of the claims
	chain   chain
	next    *attempt // the next of its chain
	last    *attempt // the last of its chain, if it is the first; otherwise nil
	held    *heldBody
	shares  bool // it shares its body with the other deliveries of its event

	result  Result // set once the attempt was made
	failed  bool   // it failed at connecting
	excused bool   // our own network or machine is to blame for the failure
}

// firstPlaces is how many places a subscription has at first in this dispatcher.
var firstPlaces = [sender.Lanes]int{sender.LaneNew: 1, sender.LaneProven: 4, sender.LaneProbation: 1}

// While our own network is down, a few attempts find out when it is back. Half of them go
// to endpoints that used to answer.
var probePlaces = [sender.Lanes]int{sender.LaneNew: 1, sender.LaneProven: 2, sender.LaneProbation: 1}

const mostProbes = 4

// idleShare: one part in this many of the proven lane is for subscribers that use none of
// it.
const idleShare = 8

// probationTurn: while memory is short, one claim in this many is for subscriptions on
// probation alone, unless their bodies take this part of the memory.
const probationTurn = 8

// mostHolding is the largest number of subscribers with held deliveries for which share
// still bars each of them from a claim.
const mostHolding = 256

func newSlots(cfg slotsConfig) *slots {
	return &slots{cfg: cfg, subs: map[int64]*subSlots{}, by: map[int64]*subscriberSlots{}, chains: map[chain]*attempt{}, seed: maphash.MakeSeed()}
}

// add puts a claimed delivery into its subscription's queue, or behind the other deliveries
// about its object.
func (s *slots) add(a *attempt) {
	s.take(a)
	if !s.follows(a) {
		s.enqueue(a)
	}
}

// take begins the account of a claimed delivery. The delivery is held until its attempt
// ends, or until forget.
func (s *slots) take(a *attempt) {
	t := a.Target
	sub := s.subs[t.SubscriptionNo]
	if sub == nil {
		sub = &subSlots{number: t.SubscriptionNo, subscriber: s.subscriber(t.SubscriberNumber), lane: t.Lane, places: s.first(t.Lane)}
		s.subs[t.SubscriptionNo] = sub
	}
	if sub.held+sub.unrecorded == 0 && !sub.probation.holds(s.age) {
		sub.lane = t.Lane // the database knows what other processes saw
	}
	sub.most = s.mostOf(t.Settings)
	sub.places = min(sub.places, sub.most)
	sub.used = s.age
	a.sub, a.account = sub, sub.lane
	s.count(a, 0, 1)
	s.claims++
	a.order = s.claims
}

// next puts a queued delivery on the wire and returns it, or nil if nothing may
// go now. Subscribers take turns, and each subscriber's subscriptions do.
func (s *slots) next() *attempt {
	if s.full() {
		return nil
	}
	for _, l := range [...]sender.Lane{sender.LaneProven, sender.LaneNew, sender.LaneProbation} {
		lane := &s.lane[l]
		if lane.wire >= s.places(l) || s.keptForProven(l) {
			continue
		}
		idleOnly := lane.wire >= s.shared(l, s.places(l))
		for i, by := range lane.ready {
			own := &by.lane[l]
			if own.wire > 0 && idleOnly || own.wire >= s.perSubscriber(l) || s.fullFor(by) {
				continue // it keeps its turn
			}
			j := slices.IndexFunc(own.ready, func(sub *subSlots) bool { return sub.wire < sub.places })
			if j < 0 {
				continue
			}
			a := s.serve(l, i, j)
			if a.account != l {
				s.count(a, 0, -1)
				a.account = l
				s.count(a, 0, 1)
			}
			s.count(a, 1, 0)
			return a
		}
	}
	return nil
}

// finished takes a completed attempt off the wire.
func (s *slots) finished(a *attempt, class sender.Class, took, fast time.Duration) {
	sub := a.sub
	wanted := sub.wire >= sub.places
	s.count(a, -1, -1)
	s.passOn(a)
	sub.unrecorded++
	switch {
	case class == sender.ClassNone && took <= fast:
		sub.failures = 0
		if wanted {
			sub.places = min(sub.places+1, sub.most)
		}
		if sub.wire < sub.places && !sub.probation.holds(s.age) { // no other attempt takes long
			s.move(sub, sender.LaneProven)
		}
	case took > fast:
		s.demote(sub)
	default:
		sub.places = max(1, sub.places/2)
		if sub.failures++; sub.lane == sender.LaneNew || sub.failures >= probationStreak {
			s.demote(sub)
		}
	}
}

// spared takes a completed attempt off the wire that says nothing about its endpoint.
func (s *slots) spared(a *attempt) {
	s.count(a, -1, -1)
	s.passOn(a)
	a.sub.unrecorded++
}

// offWire takes an attempt off the wire that was not made, and returns it with the rest of
// its chain, which goes back with it. All of them are held until forget.
func (s *slots) offWire(a *attempt) []*attempt {
	s.count(a, -1, 0)
	return s.cut([]*attempt{a}, a)
}

// slowed moves an attempt that has been on the wire for too long, and its
// subscription, to the probation lane.
func (s *slots) slowed(a *attempt) {
	a.slow = true
	s.count(a, -1, -1)
	a.account = sender.LaneProbation
	s.count(a, 1, 1)
	s.demote(a.sub)
}

// demote moves a subscription to probation and leaves it one place.
func (s *slots) demote(sub *subSlots) {
	sub.places = 1
	if sub.lane == sender.LaneProven {
		sub.probation.restart(s.age)
	}
	s.move(sub, sender.LaneProbation)
	s.crowded = s.crowded || sub.waiting() > sub.places
}

// waiting is how many held deliveries are not on the wire.
func (sub *subSlots) waiting() int { return len(sub.queue) + sub.behind }

// forget ends the account of a delivery that was given back.
func (s *slots) forget(a *attempt) { s.count(a, 0, -1) }

// recorded ends the account of an attempt whose result was recorded.
func (s *slots) recorded(a *attempt) { a.sub.unrecorded-- }

// takeQueues takes waiting deliveries from their subscriptions and returns them, so that
// they are given back. If all is set, it takes every waiting delivery. Otherwise it takes
// from subscriptions on probation alone, and leaves each of them as many as it has places.
// A subscription that cannot keep all of them keeps none behind another delivery.
func (s *slots) takeQueues(all bool) []*attempt {
	var taken []*attempt
	s.crowded = false
	for _, sub := range s.subs {
		keep := s.keeps(sub, all)
		if sub.waiting() <= keep {
			continue
		}
		keep = min(keep, len(sub.queue))
		for _, a := range sub.queue[keep:] {
			taken = s.cut(append(taken, a), a)
		}
		sub.queue = sub.queue[:keep:keep]
		if keep == 0 {
			s.withdraw(sub)
		}
		taken = s.cutBehind(taken, sub)
	}
	slices.SortFunc(taken, byOrder)
	return taken
}

// keeps is how many waiting deliveries takeQueues leaves to a subscription.
func (*slots) keeps(sub *subSlots, all bool) int {
	switch {
	case all:
		return 0
	case sub.lane == sender.LaneProbation:
		return sub.places
	}
	return sub.waiting()
}

// claim says how many deliveries may be claimed now, in each lane and for each subscriber
// and subscription.
func (s *slots) claim() ClaimParams {
	p := ClaimParams{SubscriptionRoom: map[int64]int{}}
	for i := range p.Lanes {
		l, lane := sender.Lane(i), &s.lane[i]
		p.Lanes[l] = LaneParams{
			Slots:           max(0, s.hold(l, s.places(l))-lane.held),
			PerSubscriber:   s.hold(l, s.perSubscriber(l)),
			PerSubscription: s.hold(l, s.first(l)),
			SubscriberRoom:  map[int64]int{},
		}
		if s.full() {
			p.Lanes[l].Slots = 0
		}
	}
	for _, sub := range s.subs {
		if sub.held+sub.unrecorded > 0 || sub.probation.holds(s.age) {
			p.SubscriptionRoom[sub.number] = s.hold(sub.lane, sub.usable()) - sub.held
		}
	}
	var holding [sender.Lanes]int
	for _, by := range s.by {
		full := s.fullFor(by) || s.cfg.bodyBytes > 0 && s.body.bytes+by.bytes >= s.cfg.bodyBytes
		for l := range p.Lanes {
			switch room := p.Lanes[l].SubscriberRoom; {
			case full:
				room[by.number] = 0
			case by.lane[l].held > 0:
				room[by.number] = p.Lanes[l].PerSubscriber - by.lane[l].held
				holding[l]++
			}
		}
	}
	s.share(&p, &holding)
	s.boundBytes(&p)
	return p
}

// trim forgets subscriptions that got no delivery since the last call but one, so that
// memory follows the work.
func (s *slots) trim() {
	for number, sub := range s.subs {
		if sub.held+sub.unrecorded == 0 && sub.used < s.age && !sub.probation.remembered(s.age) {
			delete(s.subs, number)
			if sub.subscriber.subs--; sub.subscriber.subs == 0 {
				delete(s.by, sub.subscriber.number)
			}
		}
	}
	s.age++
}

// perSubscriber is how many of a lane's places one subscriber may take.
func (s *slots) perSubscriber(l sender.Lane) int { return (s.places(l) + 1) / 2 }

// share leaves the last slots of the proven lane to subscribers that hold nothing. If very
// many subscribers hold deliveries, none of them holds many, and barring each of them would
// only make the claim longer.
func (s *slots) share(p *ClaimParams, holding *[sender.Lanes]int) {
	for i := range p.Lanes {
		l, held := sender.Lane(i), s.lane[i].held
		shared := s.shared(l, s.hold(l, s.places(l)))
		switch {
		case held < shared:
			p.Lanes[l].Slots = min(p.Lanes[l].Slots, shared-held)
		case holding[l] <= mostHolding:
			for number, room := range p.Lanes[l].SubscriberRoom {
				p.Lanes[l].SubscriberRoom[number] = min(0, room)
			}
		}
	}
}

// shared is how many of a lane's places are open to all subscribers. The rest is for those
// that have none, so that an idle subscriber's delivery begins at once, however many places
// the others have earned, however many subscriptions they have, and however long they keep
// their places.
func (s *slots) shared(l sender.Lane, all int) int {
	if l != sender.LaneProven {
		return all
	}
	return all - all/idleShare
}

// places is how many attempts of a lane may be on the wire.
func (s *slots) places(l sender.Lane) int {
	if s.probing {
		return probePlaces[l]
	}
	return s.cfg.places[l]
}

func (s *slots) full() bool {
	return s.wire >= s.cfg.hardLimit || s.probing && s.wire >= mostProbes
}

// keptForProven reports whether the probes that are left are for endpoints that used to
// answer. Slow probes leave their lanes, so without this those of others could take all.
func (s *slots) keptForProven(l sender.Lane) bool {
	return s.probing && l != sender.LaneProven && s.wire-s.lane[sender.LaneProven].wire >= mostProbes-probePlaces[sender.LaneProven]
}

// mostOf is how many places a subscription with such settings can earn.
func (s *slots) mostOf(settings *sender.Settings) int {
	if settings == nil || settings.MaxInFlight <= 0 {
		return s.cfg.perSubscription
	}
	return min(s.cfg.perSubscription, settings.MaxInFlight)
}

// boundBytes bounds a claim by the memory for bodies, so that deliveries without room stay
// in the database. One claim gets half of the room that is left, because all of it may go to
// one subscriber. A lane that is not proven may keep its bodies for long, so it claims
// nothing while its bodies take more than half of the memory.
//
// A store claims for the lanes in their order, and the last one is that of probation. While
// memory is short, the others could take all of it each time. So now and then a claim is for
// that lane alone, as long as its bodies take little.
func (s *slots) boundBytes(p *ClaimParams) {
	if s.cfg.bodyBytes <= 0 {
		return
	}
	room := s.cfg.bodyBytes - s.body.bytes
	p.Bytes = room - room/2
	for l := range p.Lanes {
		if p.Bytes <= 0 || sender.Lane(l) != sender.LaneProven && s.lane[l].bytes > s.cfg.bodyBytes/2 {
			p.Lanes[l].Slots = 0
		}
	}
	if p.Bytes <= 0 || room > s.cfg.bodyBytes/2 {
		return
	}
	if s.short++; s.short%probationTurn == 0 && p.Lanes[sender.LaneProbation].Slots > 0 && s.lane[sender.LaneProbation].bytes < s.cfg.bodyBytes/probationTurn {
		p.Lanes[sender.LaneNew].Slots, p.Lanes[sender.LaneProven].Slots = 0, 0
	}
}

func (s *slots) first(l sender.Lane) int { return min(firstPlaces[l], s.cfg.perSubscription) }

// hold is how many deliveries may be held for a number of places.
func (s *slots) hold(l sender.Lane, places int) int {
	if l == sender.LaneProven && !s.probing {
		return places * s.cfg.prefetch
	}
	return places
}

// count adds to the deliveries that an attempt's account has on the wire and holds.
func (s *slots) count(a *attempt, wire, held int) {
	lane, sub := &s.lane[a.account], a.sub
	by := sub.subscriber
	s.wire, s.held = s.wire+wire, s.held+held
	lane.wire, lane.held = lane.wire+wire, lane.held+held
	lane.bytes += int64(held) * int64(len(a.Body))
	switch {
	case held > 0:
		// Body is set only once: the attempt's goroutine reads it, and the attempt can be
		// moved to another lane meanwhile.
		a.held = s.body.hold(bodyOf(&a.Claimed), a.Body, by)
		if !a.shares {
			a.Body, a.shares = a.held.body, true
		}
	case held < 0:
		s.body.release(bodyOf(&a.Claimed), a.held)
		a.held = nil // the result may wait for a while, without the body
	}
	sub.wire, sub.held = sub.wire+wire, sub.held+held
	by.wire += wire
	by.lane[a.account].wire += wire
	by.lane[a.account].held += held
}
