package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// The random test runs operations against the store and against a model that is too
// simple to be wrong. It compares all lists after some of them.

// modelSeeds are such that all comes to pass that TestRandomHistoriesReach counts.
var modelSeeds = []uint64{890, 2753, 2221}

const (
	modelSteps = 220
	// A full comparison costs much more than a step.
	compareEvery = 4
	modelSubs    = 9
	modelEvents  = 20 // besides those of notices
)

func modelRules() (rules []rule) {
	for i, seed := range modelSeeds {
		rules = append(rules, rule{
			name: fmt.Sprintf("seed %d", i+1),
			rule: "Whatever is done in whatever order: no delivery of a committed event is lost or doubled, one that has ended is live again only by a redelivery or a replay, attempt numbers rise by one, none is claimed before it is due or while it is held, none before an earlier version of its object has ended if its subscription wants that, and a result that comes too late changes nothing. What is redacted is not sent again, a pass prunes what is old and nothing else, and a replay sends what is left of its set.",
			run:  func(w *world) { _ = runModel(w, seed) },
		})
	}
	return rules
}

// model has what the store should have.
type model struct {
	*world
	rand       *rand.Rand
	ages       *rand.Rand // for what sweeps find too old
	clock      time.Time
	owners     []string // without the deleted ones
	subs       []*modelSub
	events     []*modelEvent // in the order of their commits
	deliveries []*modelDelivery
	byKey      map[dispatch.DeliveryKey]*modelDelivery
	turns      int // entries and claims of all lines
	byPair     map[pair]*modelDelivery
	convert    sender.Convert       // of the last expansion
	passed     map[pair]bool        // an expansion that left some may have decided that there is no delivery
	claims     []dispatch.Claimed   // all that were ever made
	replays    []*modelReplay       // that are not at their end
	over       map[string]time.Time // when replays ended that are not pruned, by their ids
	trace      []string
	saw        map[string]int // how often something happened, for TestRandomHistoriesReach

	floor     int64                                  // the next version of each object is above it
	given     map[dispatch.DeliveryKey]dispatch.Live // to Decide, at the last call
	announced map[string]sender.Draft                // of notices, by id
	notices   []sender.Notice                        // that are to be stored with the present batch
	noticed   int                                    // notices stored in all
	unswept   bool                                   // what was made and a resume has skipped: its end may be stored later
}

type pair struct{ event, subscription string }

type modelSub struct {
	sender.Subscription
	deleted bool
	since   map[string]int // by pattern of its filter: how many events were committed before it was added
	made    int            // how many were before it was made
	last    int            // how many were before it was closed
	skipped []modelSkipped
	granted time.Time // when its rate grants another attempt
}

// modelSkipped is a resume, and how many events were committed before it.
type modelSkipped struct {
	sender.Resume
	upTo int
}

type modelEvent struct {
	draft    sender.Draft
	version  int64
	at       int // its place in the order of the commits
	created  time.Time
	expanded bool
	late     bool // it may be expanded after one that was published later
	redacted bool
	gone     bool // it was pruned
}

type modelDelivery struct {
	id        string
	key       dispatch.DeliveryKey // zero: it was never claimed
	event     *modelEvent
	sub       *modelSub
	status    sender.Status // while it is live: the row's status, whatever the subscription's is
	live      bool
	dropped   bool      // a resume has skipped it while an attempt was in flight
	leased    time.Time // zero: it is not
	due       time.Time
	first     time.Time
	number    int
	token     int64 // of the last claim
	tries     int
	uncounted bool // an attempt of the present schedule did not count
	vague     bool // the contract does not say whether first begins anew
	resumed   bool // its subscription was resumed while an attempt was in flight
	back      bool // it was given back before its first attempt
	stood     time.Duration
	single    bool
	spared    bool
	lined     bool // it is in the line of its object: see modelline.go
	behind    bool // it waits there
	stops     bool // it is dead-lettered, and holds back others
	entered   int  // when it came into its line, counted in entries and claims of all lines
	begun     int  // when it was claimed last while it was in a line
	attempts  []sender.Class
	began     time.Time // the last of them
	ended     time.Time // for the last time
	ends      int       // how often it has ended
	gone      bool      // it was pruned
}

func runModel(w *world, seed uint64) *model {
	m := &model{
		world: w, rand: rand.New(rand.NewPCG(seed, 1)), ages: rand.New(rand.NewPCG(seed, 2)), clock: w.now(), convert: modelConvert,
		byKey: map[dispatch.DeliveryKey]*modelDelivery{}, byPair: map[pair]*modelDelivery{}, passed: map[pair]bool{}, saw: map[string]int{},
		given: map[dispatch.DeliveryKey]dispatch.Live{}, announced: map[string]sender.Draft{}, over: map[string]time.Time{},
	}
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("the last steps of seed %d: %v", seed, m.trace[max(0, len(m.trace)-20):])
		}
	})
	m.owners = []string{w.subscriber(), w.subscriber()}
	m.createSubscriber(sender.Operator)
	m.owners = append(m.owners, sender.Operator)
	m.subscribe()
	m.subscribe()
	steps := []struct {
		name   string
		weight int
		run    func()
	}{
		{"subscribe", 3, m.subscribe},
		{"unsubscribe", 1, m.unsubscribe},
		{"update", 5, m.update},
		{"pause", 3, func() { m.hold(sender.SubscriptionPaused) }},
		{"disable", 2, func() { m.hold(sender.SubscriptionDisabled) }},
		{"resume", 9, m.resume},
		{"close", 1, m.close},
		{"delete subscriber", 1, m.deleteSubscriber},
		{"change and roll back", 2, m.changeAndRollBack},
		{"publish", 9, m.publish},
		{"publish and roll back", 2, m.publishAndRollBack},
		{"publish again", 2, m.publishAgain},
		{"expand a little", 5, func() { m.expand(1+m.rand.IntN(2), 1+m.rand.IntN(3)) }},
		{"expand", 4, func() { m.expand(100, 100) }},
		{"claim a little", 6, func() { m.claim(1 + m.rand.IntN(3)) }},
		{"claim", 6, func() { m.claim(plenty) }},
		{"record", 9, m.record},
		{"step", 7, m.step},
		{"release", 3, m.release},
		{"redeliver", 6, m.redeliver},
		{"advance", 8, m.advance},
		{"sweep", 2, m.sweep},
		{"pass over", 4, m.passOver},
		{"redact", 1, m.redactSome},
		{"prune", 3, m.pruneOld},
		{"replay", 3, m.startReplay},
		{"step replays", 4, m.stepReplays},
		{"change replay", 1, m.changeReplay},
	}
	var deck []int
	for i, s := range steps {
		for range s.weight {
			deck = append(deck, i)
		}
	}
	for i := range modelSteps {
		step := steps[deck[m.rand.IntN(len(deck))]]
		m.say("%s", step.name)
		step.run()
		if m.Consistent != nil {
			m.Consistent(m.T)
		}
		if i%compareEvery == 0 {
			m.compare()
		}
	}
	m.drain()
	return m
}

// say adds to the trace.
func (m *model) say(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

// held tells whether a subscription's live deliveries are held.
func (s *modelSub) held() bool {
	return s.Status == sender.SubscriptionPaused || s.Status == sender.SubscriptionDisabled
}

// asks tells whether a subscription gets an event, whatever its filter says of the content.
func (s *modelSub) asks(e *modelEvent) bool {
	if s.deleted || e.redacted || e.at < s.made || s.Status == sender.SubscriptionClosing && e.at >= s.last {
		return false
	}
	asks := s.Subscription
	asks.EventTypes = nil
	for pattern, since := range s.since {
		if e.at >= since {
			asks.EventTypes = append(asks.EventTypes, pattern)
		}
	}
	return sender.Matches(asks, e.draft.Type, e.draft.Subscriber, e.draft.Subscription, e.draft.About)
}

// skips tells whether a resume has skipped an event before it was expanded.
func (s *modelSub) skips(e *modelEvent) bool {
	for _, l := range s.skipped {
		if e.at < l.upTo && !takes(l.Resume, e) {
			return true
		}
	}
	return false
}

func takes(r sender.Resume, e *modelEvent) bool { return !r.None && !e.created.Before(r.Since) }

// cancelled tells whether a live delivery is to be ended.
func (d *modelDelivery) cancelled() bool { return d.sub.deleted || d.dropped || d.event.redacted }

// inFlight tells whether a lease is running.
func (d *modelDelivery) inFlight(now time.Time) bool { return !d.leased.IsZero() && d.due.After(now) }

// lapsed tells whether a lease has ended without a result.
func (d *modelDelivery) lapsed(now time.Time) bool { return !d.leased.IsZero() && !d.due.After(now) }

func (d *modelDelivery) reads() sender.Status {
	switch {
	case !d.live:
		return d.status
	case d.cancelled() && d.single:
		return sender.StatusDelivered
	case d.cancelled():
		return sender.StatusCancelled
	case d.sub.held():
		return sender.StatusHeld
	}
	return d.status
}

// attempted ends the attempt in hand.
func (d *modelDelivery) attempted(class sender.Class) {
	d.attempts, d.began = append(d.attempts, class), d.leased
}

// end ends a live delivery.
func (m *model) end(d *modelDelivery, status sender.Status) {
	d.ended, d.ends = m.clock, d.ends+1
	d.status, d.live, d.dropped, d.single, d.spared, d.leased, d.behind = status, false, false, false, false, time.Time{}, false
	d.stops = d.lined && status == sender.StatusDeadLettered && d.sub.holdsDead()
	d.lined = d.stops
}

// cancel ends a cancelled delivery, and stores its lost attempt if it has one.
func (m *model) cancel(d *modelDelivery) {
	if !d.leased.IsZero() {
		d.attempted(sender.ClassInterrupted)
	}
	if d.single {
		m.end(d, sender.StatusDelivered)
	} else {
		m.end(d, sender.StatusCancelled)
	}
}

// renew starts a live delivery's schedule anew.
func (d *modelDelivery) renew(now time.Time) {
	d.tries, d.first, d.stood, d.spared, d.uncounted, d.vague, d.resumed = 0, time.Time{}, 0, false, false, false, false
	if d.leased.IsZero() {
		d.due, d.back = now, false
	} else {
		d.tries, d.first = 1, d.leased
	}
}

// drain lets every attempt succeed until nothing is live, and compares the
// attempts of all deliveries.
func (m *model) drain() {
	m.say("drain")
	for _, s := range m.subs {
		if s.held() && !s.deleted {
			m.resumeWith(s, sender.Resume{})
		}
		if !s.deleted {
			m.set(s, sender.Settings{})
		}
	}
	m.expandAll()
	m.endReplays()
	for rounds := 0; ; rounds++ {
		m.check(rounds < 30, "the store is not drained after %d rounds", rounds)
		m.Advance(24 * time.Hour)
		m.clock = m.clock.Add(24 * time.Hour)
		m.sweep()
		m.compare()
		before := len(m.claims)
		m.claim(plenty)
		m.expandAll() // what was announced
		if before == len(m.claims) {
			break
		}
		m.settleAll(resultsOf(m.claims[before:], sender.ClassNone))
	}
	m.sweep()
	m.compare()
	for _, d := range m.deliveries {
		m.compareAttempts(d)
	}
	for _, s := range m.subs {
		m.check(s.deleted || s.Status == sender.SubscriptionActive, "subscription %s is %s in the end", s.ID, s.Status)
	}
	m.Advance(24 * time.Hour)
	m.clock = m.clock.Add(24 * time.Hour)
	m.pruneBefore(m.pruneParams(all(time.Hour), 50))
	m.compare()
	m.equal(len(m.deliveries), 0, "deliveries left in the end")
	m.equal(m.world.prune(all(time.Hour)), dispatch.Pruned{}, "pruned by another pass")
}
