package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/sender"
)

// The random test runs operations against the store and against a model that is
// too simple to be wrong, and compares all that can be read after each.

const (
	modelSeeds  = 5
	modelSteps  = 200
	modelSubs   = 8
	modelEvents = 20
)

func modelRules[Tx any]() (rules []rule[Tx]) {
	for seed := range uint64(modelSeeds) {
		rules = append(rules, rule[Tx]{
			name: fmt.Sprintf("seed %d", seed+1),
			rule: "Whatever is done in whatever order: no delivery of a committed event is lost or doubled, one that has ended is live again only by a redelivery, attempt numbers rise by one, none is claimed before it is due, and a result that comes too late changes nothing.",
			run:  func(w *world[Tx]) { runModel(w, seed+1) },
		})
	}
	return rules
}

// model is what should be in the store.
type model[Tx any] struct {
	*world[Tx]
	rand       *rand.Rand
	clock      time.Time
	owners     []string
	subs       []*modelSub
	events     []*modelEvent
	deliveries []*modelDelivery
	byKey      map[sender.DeliveryKey]*modelDelivery
	byPair     map[pair]*modelDelivery
	claims     []sender.Claimed // all that were ever made
	trace      []string
}

type pair struct{ event, subscription string }

type modelSub struct {
	sender.Subscription
	deleted bool
	health  sender.Health
}

type modelEvent struct {
	draft    sender.Draft
	version  int64
	audience []*modelSub // who was there when it was committed, and matches
	expanded bool
}

type modelDelivery struct {
	id       string
	event    *modelEvent
	sub      *modelSub
	status   sender.Status // while it is live: of the row alone, whether the subscription is deleted or not
	live     bool
	leased   time.Time // zero: it is not
	due      time.Time
	first    time.Time
	number   int
	tries    int
	single   bool
	attempts []sender.Class
}

func runModel[Tx any](w *world[Tx], seed uint64) {
	m := &model[Tx]{
		world: w, rand: rand.New(rand.NewPCG(seed, 0)), clock: w.now(),
		byKey: map[sender.DeliveryKey]*modelDelivery{}, byPair: map[pair]*modelDelivery{},
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
		{"subscribe", 2, m.subscribe},
		{"unsubscribe", 1, m.unsubscribe},
		{"publish", 8, m.publish},
		{"publish and roll back", 2, m.publishAndRollBack},
		{"expand a little", 5, func() { m.expand(1+m.rand.IntN(2), 1+m.rand.IntN(3)) }},
		{"expand", 4, func() { m.expand(100, 100) }},
		{"claim a little", 6, func() { m.claim(1 + m.rand.IntN(3)) }},
		{"claim", 6, func() { m.claim(plenty) }},
		{"record", 14, m.record},
		{"release", 3, m.release},
		{"redeliver", 6, m.redeliver},
		{"advance", 8, m.advance},
		{"sweep", 2, m.sweep},
	}
	var deck []int
	for i, s := range steps {
		for range s.weight {
			deck = append(deck, i)
		}
	}
	for range modelSteps {
		step := steps[deck[m.rand.IntN(len(deck))]]
		m.say("%s", step.name)
		step.run()
		m.compare()
	}
	m.drain()
}

// say adds to the trace.
func (m *model[Tx]) say(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *model[Tx]) subscribe() {
	if len(m.subs) == modelSubs {
		return
	}
	types := [][]string{{"*"}, {"a.*"}, {"a.b", "b.*"}, {"b.c"}}[m.rand.IntN(4)]
	s := &modelSub{Subscription: m.subscription(m.owners[m.rand.IntN(len(m.owners))], types...)}
	m.inTx(func(tx Tx) error { return m.Store.CreateSubscriptionTx(m.ctx, tx, s.Subscription) })
	m.subs = append(m.subs, s)
}

func (m *model[Tx]) unsubscribe() {
	s := m.subs[m.rand.IntN(len(m.subs))]
	for _, d := range m.deliveries {
		if d.sub == s && d.live && d.single {
			return // what it would read as is not laid down
		}
	}
	err := m.Store.InTx(m.ctx, func(tx Tx) error { return m.Store.DeleteSubscriptionTx(m.ctx, tx, s.ID) })
	if s.deleted {
		m.errorIs(err, sender.ErrNotFound, "deleting a deleted subscription")
		return
	}
	m.noError(err, "deleting a subscription")
	s.deleted = true
}

// drafts are one to three events, for everybody or for somebody.
func (m *model[Tx]) drafts() (events []*modelEvent, drafts []sender.Draft) {
	for range 1 + m.rand.IntN(3) {
		obj := sender.Object{Type: "thing", ID: fmt.Sprint(m.rand.IntN(3))}
		d := m.draftOn([]string{"a.b", "a.b.c", "b.c", "c"}[m.rand.IntN(4)], obj)
		switch to := m.subs[m.rand.IntN(len(m.subs))]; m.rand.IntN(4) {
		case 0:
			d.Subscriber = to.Subscriber
		case 1:
			if !to.deleted {
				d.Subscriber, d.Subscription = to.Subscriber, to.ID
			}
		}
		e := &modelEvent{draft: d, version: 1}
		for _, before := range append(m.events, events...) {
			if before.draft.Object == obj {
				e.version++
			}
		}
		for _, s := range m.subs {
			if !s.deleted && sender.Matches(s.Subscription, d.Type, d.Subscriber, d.Subscription) {
				e.audience = append(e.audience, s)
			}
		}
		events, drafts = append(events, e), append(drafts, d)
	}
	return events, drafts
}

func (m *model[Tx]) publish() {
	if len(m.events) >= modelEvents {
		return
	}
	events, drafts := m.drafts()
	for i, ref := range m.world.publish(drafts...) {
		m.equal(ref, sender.Ref{ID: drafts[i].ID, Version: events[i].version}, "Ref")
	}
	m.events = append(m.events, events...)
}

func (m *model[Tx]) publishAndRollBack() {
	_, drafts := m.drafts()
	failed := errors.New("rolled back")
	err := m.Store.InTx(m.ctx, func(tx Tx) error {
		_, err := m.Store.PublishTx(m.ctx, tx, drafts)
		return errors.Join(err, failed)
	})
	m.errorIs(err, failed, "InTx whose function failed")
}

func (m *model[Tx]) expand(events, deliveries int) {
	x, err := m.Store.Expand(m.ctx, sender.ExpandParams{Events: events, Deliveries: deliveries})
	m.noError(err, "expanding")
	made := 0
	var list []sender.Delivery
	if x.Deliveries > 0 {
		list = m.list(sender.DeliveryQuery{Limit: 200})
	}
	for _, read := range list {
		p := pair{read.Event.ID, read.Subscription}
		if m.byPair[p] != nil {
			continue
		}
		made++
		for _, e := range m.events {
			for _, s := range e.audience {
				if p == (pair{e.draft.ID, s.ID}) && !e.expanded && !s.deleted {
					d := &modelDelivery{id: read.ID, event: e, sub: s, status: sender.StatusPending, live: true, due: m.clock}
					m.deliveries, m.byPair[p] = append(m.deliveries, d), d
				}
			}
		}
		m.check(m.byPair[p] != nil, "a delivery was made that should not be: event %s, subscription %s", read.Event.ID, read.Subscription)
	}
	m.equal(made, x.Deliveries, "Expanded.Deliveries, against the deliveries that are new in the list")
	if x.More {
		return
	}
	for _, e := range m.events {
		for _, s := range e.audience {
			m.check(e.expanded || s.deleted || m.byPair[pair{e.draft.ID, s.ID}] != nil, "event %s was expanded without a delivery to %s", e.draft.ID, s.ID)
		}
		e.expanded = true
	}
}

func (m *model[Tx]) claim(slots int) {
	p := sender.ClaimParams{Lease: lease, Lanes: lanes(slots)}
	claims := m.claimBy(p)
	for _, found := range claims.Interrupted {
		d := m.byKey[found.Result.Key]
		m.check(d != nil && d.live && !d.sub.deleted && !d.leased.IsZero() && !d.due.After(m.clock), "an attempt that is not lost was interrupted: %+v", found.Result)
		m.equal(found.Result.Number, d.number, "number of the interrupted attempt")
		m.settle(d, sender.ClassInterrupted, found.Decision)
	}
	fresh := map[*modelDelivery]bool{}
	perLane := [sender.Lanes]int{}
	for _, c := range claims.Claimed {
		d := m.byPair[pair{c.Event.ID, c.Target.Subscription}]
		m.check(d != nil && d.live && !d.sub.deleted && d.leased.IsZero() && !fresh[d], "a delivery was claimed that may not be: %+v", c.Event)
		m.check(!d.due.After(m.clock), "a delivery was claimed that is due in %v", d.due.Sub(m.clock))
		m.equal([]int64{int64(c.Number), c.Token}, []int64{int64(d.number + 1), int64(d.number + 1)}, "number and token of the attempt")
		m.sameBody(c.Body, d.event.draft, d.event.version)
		d.number++
		d.tries++
		if d.tries == 1 {
			d.first = m.clock
		}
		d.leased, d.due = m.clock, m.clock.Add(lease)
		m.byKey[c.Key], fresh[d] = d, true
		m.claims = append(m.claims, c)
		perLane[c.Target.Lane]++
	}
	for lane, n := range perLane {
		m.check(n <= slots, "lane %d got %d deliveries for %d slots", lane, n, slots)
	}
	for _, d := range m.deliveries {
		if d.live && !d.sub.deleted && !fresh[d] {
			m.check(slots < plenty || d.due.After(m.clock), "delivery %s has been due for %v and was not claimed", d.id, m.clock.Sub(d.due))
			late := claims.NextDue.After(d.due.Add(time.Microsecond)) && claims.NextDue.After(claims.Now.Add(time.Millisecond))
			m.check(!claims.NextDue.IsZero() && !late, "NextDue is %v, and %s is due at %v", claims.NextDue, d.id, d.due)
		}
	}
}

// record records the results of a few claims, of which many are of long ago.
func (m *model[Tx]) record() {
	var results []sender.Result
	for range 1 + m.rand.IntN(4) {
		if len(m.claims) == 0 {
			return
		}
		recent := m.claims[max(0, len(m.claims)-8):]
		class := []sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassStatus}[m.rand.IntN(3)]
		results = append(results, result(recent[m.rand.IntN(len(recent))], class))
	}
	m.settleAll(results)
}

func (m *model[Tx]) settleAll(results []sender.Result) {
	for i, r := range m.tryRecord(results...) {
		d := m.byKey[results[i].Key]
		lost := !d.live || d.leased.IsZero() || int64(d.number) != results[i].Token
		m.equal(r.Lost, lost, "whether result %d, of attempt %d of %s, is lost", i, results[i].Number, d.id)
		if !lost {
			m.settle(d, results[i].Class, r.Decision)
		}
	}
}

// settle makes of a delivery what an attempt of a class makes of it, and compares
// the decision.
func (m *model[Tx]) settle(d *modelDelivery, class sender.Class, got sender.Decision) {
	d.attempts = append(d.attempts, class)
	if d.sub.deleted {
		d.status, d.live = sender.StatusCancelled, false
		if class == sender.ClassNone {
			d.status = sender.StatusDelivered
		}
		return
	}
	want := decide(sender.Live{Number: d.number, Tries: d.tries, First: d.first, Single: d.single}, d.sub.health, sender.Result{Class: class}, m.clock)
	m.equal(got.Status, want.Status, "decision on attempt %d of %s", d.number, d.id)
	m.sameTime(got.Due, want.Due, "Due of the decision on attempt %d of %s", d.number, d.id)
	d.sub.health = want.Health
	d.status, d.live, d.due, d.leased = want.Status, want.Status == sender.StatusAwaitingRetry, want.Due, time.Time{}
	d.single = d.single && d.live
}

func (m *model[Tx]) release() {
	if len(m.claims) == 0 {
		return
	}
	recent := m.claims[max(0, len(m.claims)-8):]
	c := recent[m.rand.IntN(len(recent))]
	r := sender.Release{Key: c.Key, Token: c.Token}
	due := m.clock
	if m.rand.IntN(2) == 0 {
		due = m.clock.Add(10 * time.Minute)
		r.Due = due
	}
	m.noError(m.Store.Release(m.ctx, []sender.Release{r}), "releasing")
	if d := m.byKey[c.Key]; d.live && !d.leased.IsZero() && int64(d.number) == c.Token {
		d.number--
		d.tries--
		d.leased, d.due = time.Time{}, due
	}
}

func (m *model[Tx]) redeliver() {
	if len(m.deliveries) == 0 {
		return
	}
	d := m.deliveries[m.rand.IntN(len(m.deliveries))]
	err := m.Store.Redeliver(m.ctx, d.id, time.Time{})
	switch {
	case d.reads() == sender.StatusCancelled:
		m.errorIs(err, sender.ErrCancelled, "redelivering a cancelled delivery")
		return
	case d.sub.deleted:
		m.check(err != nil, "a %s delivery of a deleted subscription was redelivered", d.status)
		return
	}
	m.noError(err, "redelivering %s", d.id)
	switch {
	case !d.live:
		d.single = d.status == sender.StatusDelivered
		d.status, d.live, d.tries, d.due = sender.StatusAwaitingRetry, true, 0, m.clock
	case d.leased.IsZero():
		d.tries, d.due = 0, m.clock
	default:
		d.tries, d.first = 1, d.leased
	}
}

func (m *model[Tx]) advance() {
	by := []time.Duration{time.Second, lease - time.Second, lease, 10 * time.Minute, time.Hour}[m.rand.IntN(5)]
	m.Advance(by)
	m.clock = m.clock.Add(by)
}

func (m *model[Tx]) sweep() {
	over := 0
	for _, d := range m.deliveries {
		if !d.live || !d.sub.deleted || d.inFlight(m.clock) {
			continue
		}
		over++
		if d.leased.IsZero() {
			d.status, d.live = sender.StatusCancelled, false
		} else {
			m.settle(d, sender.ClassInterrupted, sender.Decision{})
		}
	}
	m.equal(m.world.sweep(1+m.rand.IntN(3)), over, "deliveries ended by sweeps")
}

// inFlight tells whether a lease is running.
func (d *modelDelivery) inFlight(now time.Time) bool { return !d.leased.IsZero() && d.due.After(now) }

func (d *modelDelivery) reads() sender.Status {
	if d.live && d.sub.deleted {
		return sender.StatusCancelled
	}
	return d.status
}

// compare compares all that a list says with the model.
func (m *model[Tx]) compare() {
	list := m.list(sender.DeliveryQuery{Limit: 200})
	m.equal(len(list), len(m.deliveries), "number of deliveries")
	for _, read := range list {
		d := m.byPair[pair{read.Event.ID, read.Subscription}]
		m.check(d != nil && d.id == read.ID, "delivery %s of event %s to %s has another id, or should not be", read.ID, read.Event.ID, read.Subscription)
		if d.single {
			m.check(read.Status != sender.StatusDeadLettered && read.Status != sender.StatusCancelled, "status of %s, which was delivered and is sent again: %s", d.id, read.Status)
		} else {
			m.equal(read.Status, d.reads(), "status of %s", d.id)
		}
		last := sender.ClassNone
		if n := len(d.attempts); n > 0 {
			last = d.attempts[n-1]
		}
		m.equal([]any{read.Version, read.AttemptCount, read.LastErrorClass}, []any{d.event.version, len(d.attempts), last}, "version, attempts and last class of %s", d.id)
		switch {
		case !d.live:
			m.check(!read.InFlight && read.NextAttemptAt.IsZero(), "%s has ended, but is in flight, or has a next attempt", d.id)
		case d.sub.deleted:
			m.check(read.NextAttemptAt.IsZero(), "%s is cancelled, but has a next attempt", d.id)
		case d.leased.IsZero():
			m.check(!read.InFlight, "%s is in flight, and should not be", d.id)
			m.sameTime(read.NextAttemptAt, d.due, "NextAttemptAt of %s", d.id)
		case d.inFlight(m.clock):
			m.check(read.InFlight, "%s is not in flight, and should be", d.id)
		}
	}
}

// drain lets every attempt succeed until nothing is live, and compares the
// attempts of all deliveries.
func (m *model[Tx]) drain() {
	m.say("drain")
	m.expand(plenty, plenty)
	for rounds := 0; ; rounds++ {
		m.check(rounds < 10, "the store is not drained after %d rounds", rounds)
		m.Advance(24 * time.Hour)
		m.clock = m.clock.Add(24 * time.Hour)
		m.sweep()
		before := len(m.claims)
		m.claim(plenty)
		if before == len(m.claims) {
			break
		}
		var results []sender.Result
		for _, c := range m.claims[before:] {
			results = append(results, result(c, sender.ClassNone))
		}
		m.settleAll(results)
	}
	for _, d := range m.deliveries {
		read := m.get(d.id)
		m.equal(read.Status, d.reads(), "status of %s in the end", d.id)
		m.check(!d.live, "%s is still live", d.id)
		m.sameBody(read.Body, d.event.draft, d.event.version)
		m.equal(len(read.Attempts), len(d.attempts), "number of attempts of %s", d.id)
		for i, a := range read.Attempts {
			m.equal([]any{a.Number, a.Class}, []any{i + 1, d.attempts[i]}, "number and class of attempt %d of %s", i+1, d.id)
		}
	}
}
