package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
)

// producer publishes, each event under an idempotency key, until it has an answer.
type producer struct {
	w     *world
	left  int
	made  int
	seen  map[string]*event // by idempotency key: the event that was committed under it
	begun int               // that have no answer yet
}

func newProducer(w *world) producer {
	return producer{w: w, left: w.cfg.Events, seen: map[string]*event{}}
}

func (p *producer) begin() { p.w.at(0, p.some) }

// some publishes some events, and plans the next ones, so that all are published in
// time.
func (p *producer) some() {
	w := p.w
	if p.left == 0 {
		return
	}
	n := 1
	if w.rand.IntN(4) == 0 { // a burst
		n = min(p.left, 1+w.rand.IntN(40))
	}
	for range n {
		p.left--
		p.one(w.links != nil && w.fault(lateCommit))
	}
	left := w.lasts*9/10 - w.now.Sub(begins)
	w.at(w.between(time.Microsecond, max(time.Millisecond, 2*left/time.Duration(p.left+1))), p.some)
}

// one publishes an event. A late one is published in a transaction that stays open while others
// go on.
func (p *producer) one(late bool) {
	w := p.w
	p.made++
	part := w.rand.IntN(parts)
	e := sender.Event{
		Type:   []string{"thing.changed", "thing.gone", "other.changed"}[w.rand.IntN(3)],
		Object: sender.Object{Type: "thing", ID: fmt.Sprint(w.rand.IntN(6))}, Data: newerData{p.made, part}, PayloadVersion: newerVersion,
		IdempotencyKey: fmt.Sprint("k", p.made), OccurredAt: w.now,
	}
	if w.rand.IntN(4) == 0 {
		e.Subscriber = w.owners[w.rand.IntN(len(w.owners))].id
	}
	if late { // others would wait for the object's version
		e.Object.ID = fmt.Sprint("late-", p.made)
	}
	p.begun++
	p.try(e, late)
}

// version publishes another version of an object for one subscription.
func (p *producer) version(object string, s *subscription) {
	p.made++
	p.begun++
	p.try(sender.Event{
		Type: "thing.changed", Object: sender.Object{Type: "thing", ID: object}, Data: newerData{p.made, 0}, PayloadVersion: newerVersion,
		IdempotencyKey: fmt.Sprint("k", p.made), OccurredAt: p.w.now, Subscriber: s.owner.id, Subscription: s.id,
	}, false)
}

// meanwhile publishes events while the transaction of a late one is open, the last of them right
// before its end: so scans of the outbox begin behind the late one when it is committed.
func (p *producer) meanwhile(open time.Duration) {
	another := func() { p.one(false) }
	for i := range 4 {
		p.w.at(open*time.Duration(i)/4, another)
	}
	p.w.at(open-p.w.between(time.Millisecond, time.Second), another)
}

// next publishes the next version of an event's object.
func (p *producer) next(e sender.Event) {
	p.made++
	p.begun++
	e.IdempotencyKey, e.OccurredAt, e.Data = fmt.Sprint("k", p.made), p.w.now, newerData{p.made, e.Data.(newerData).Part}
	p.try(e, false)
}

// try publishes once, and again if it does not learn of the commit.
func (p *producer) try(e sender.Event, late bool) {
	w := p.w
	if first := p.seen[e.IdempotencyKey]; first != nil && w.now.Sub(first.created) > w.config.Retention.Events/2 {
		p.begun-- // the key may be forgotten soon
		return
	}
	again := func() { w.at(w.between(time.Millisecond, 10*time.Minute), func() { p.try(e, late) }) }
	if w.away.After(w.now) || w.fault(failBefore) {
		again()
		return
	}
	created, rollBack, open := w.now, w.fault(rolledBack), time.Duration(0)
	mend := func() (bool, bool) { return false, false }
	if late { // meanwhile other calls break
		open = w.between(time.Millisecond, w.lasts/20)
		w.say("%s is published, in a transaction that stays open for %v", e.IdempotencyKey, open)
		p.meanwhile(open)
	} else {
		mend = w.mayBreak(brokenWork)
	}
	ref, err := w.publish(e, rollBack, open)
	broke, committed := mend()
	first := p.seen[e.IdempotencyKey]
	switch {
	case broke && err != nil:
		w.say("%s: the connection breaks, committed: %v", e.IdempotencyKey, committed)
		switch {
		case committed && first == nil:
			p.committed(e, ref, created)
		case !committed && !ref.Duplicate:
			w.undone[ref.ID] = true
		}
		again()
		return
	case rollBack && errors.Is(err, errRolledBack):
		if !ref.Duplicate {
			w.undone[ref.ID] = true
		}
		w.say("%s is rolled back", e.IdempotencyKey)
		again()
		return
	case err != nil:
		w.fail(err)
		return
	case first == nil && ref.Duplicate, first != nil && (!ref.Duplicate || ref.ID != first.id || ref.Version != first.version):
		w.violated("I1", "%s was published twice: %+v after %+v", e.IdempotencyKey, ref, first)
		return
	case first == nil:
		p.committed(e, ref, created)
		if late { // before anybody looks for new events
			p.next(e)
		}
	}
	w.hint()
	switch {
	case w.fault(unknownPublish):
		w.say("%s is published, and its producer does not know", e.IdempotencyKey)
		again()
		return
	case w.fault(crashedPublish):
		w.say("%s is published, and its producer dies", e.IdempotencyKey)
	}
	p.begun--
}

// committed notes a committed publish.
func (p *producer) committed(e sender.Event, ref sender.Ref, created time.Time) {
	w := p.w
	known := &event{
		name: fmt.Sprint("e", p.made), id: ref.ID, kind: e.Type, object: dedup.Object(e.Object), version: ref.Version, at: w.now, created: created,
		part: e.Data.(newerData).Part, only: w.subByID[e.Subscription],
	}
	known.name = "e" + e.IdempotencyKey[1:]
	for _, o := range w.owners {
		if o.id == e.Subscriber {
			known.to = o
		}
	}
	w.events, w.eventByID[known.id] = append(w.events, known), known
	w.committed++
	p.seen[e.IdempotencyKey] = known
	w.say("%s is published, version %d of %s", known.name, known.version, known.object.ID)
}
