package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// object draws one of a few objects.
func (m *model) object() sender.Object {
	return sender.Object{Type: "thing", ID: fmt.Sprint(m.rand.IntN(3))}
}

// drafts draws one to three events, for everybody or for one subscriber.
func (m *model) drafts() (events []*modelEvent, drafts []sender.Draft) {
	for range 1 + m.rand.IntN(3) {
		obj := m.object()
		d := m.draftOn([]string{"a.b", "a.b.c", "b.c", "c"}[m.rand.IntN(4)], obj)
		d.BodyTail = m.payload(obj.ID)
		to := m.subs[m.rand.IntN(len(m.subs))]
		switch m.rand.IntN(4) {
		case 0:
			d.Subscriber = m.owners[m.rand.IntN(len(m.owners))]
		case 1:
			if !to.deleted && to.Status != sender.SubscriptionClosing {
				d.Subscriber, d.Subscription = to.Subscriber, to.ID
			}
		}
		e := &modelEvent{version: m.newest(obj, events) + 1, at: len(m.events) + len(events), created: m.clock}
		if m.rand.IntN(4) == 0 {
			e.version += int64(m.rand.IntN(3))
			d.Version = e.version
		}
		if m.rand.IntN(3) == 0 {
			d.Key, d.KeyScope, d.KeyHash = d.ID, "model", sha256.Sum256([]byte(d.ID))
		}
		e.draft = d
		events, drafts = append(events, e), append(drafts, d)
	}
	return events, drafts
}

// newest returns the highest version that an object has had, with that of some new events.
func (m *model) newest(o sender.Object, events []*modelEvent) int64 {
	newest := m.floor
	for _, e := range slices.Concat(m.events, events) {
		if e.draft.Object == o {
			newest = max(newest, e.version)
		}
	}
	return newest
}

func (m *model) publish() {
	there := 0
	for _, e := range m.events {
		if !e.gone && !e.draft.Notice {
			there++
		}
	}
	if there >= modelEvents {
		return
	}
	events, drafts := m.drafts()
	last := len(drafts) - 1
	if newest := m.newest(drafts[last].Object, events[:last]); newest > m.floor && m.rand.IntN(8) == 0 {
		m.saw["refused for its version"]++
		drafts[last].Version = newest
		_, err := m.tryPublish(drafts...)
		m.errorIs(err, sender.ErrVersion, "publishing version %d of %v again", newest, drafts[last].Object)
		return
	}
	for i, ref := range m.world.publish(drafts...) {
		m.equal(ref.Delivery != "", drafts[i].Subscription != "", "whether a Ref has a Delivery")
		ref.Delivery = ""
		m.equal(ref, sender.Ref{ID: drafts[i].ID, Version: events[i].version}, "Ref")
	}
	m.events = append(m.events, events...)
}

// publishAgain publishes an event again, under its idempotency key.
func (m *model) publishAgain() {
	i := slices.IndexFunc(m.events, func(e *modelEvent) bool { return e.draft.Key != "" && !e.gone })
	if i < 0 {
		return
	}
	m.saw["published again"]++
	before := m.events[i]
	again := before.draft
	again.ID = m.name("evt")
	ref := m.world.publish(again)[0]
	ref.Delivery = ""
	m.equal(ref, sender.Ref{ID: before.draft.ID, Version: before.version, Duplicate: true}, "Ref of an event that is published again")
}

func (m *model) publishAndRollBack() {
	_, drafts := m.drafts()
	failed := errors.New("rolled back")
	err := m.Store.InTx(m.ctx, func(tx any) error {
		_, err := m.Store.PublishTx(m.ctx, tx, drafts)
		return errors.Join(err, failed)
	})
	m.errorIs(err, failed, "InTx whose function failed")
}

// expand expands some events, and tells whether there are more.
func (m *model) expand(events, deliveries int) (more bool) {
	return m.do(m.expansion(events, deliveries), nil, dispatch.ClaimParams{})
}

func (m *model) expansion(events, deliveries int) dispatch.ExpandParams {
	m.convert = modelConvert
	if m.rand.IntN(6) == 0 { // a process without a catalogue
		m.convert = nil
	}
	return dispatch.ExpandParams{Events: events, Deliveries: deliveries, Whole: m.rand.IntN(3), Part: m.rand.IntN(3), Convert: m.convert}
}

// expanded notes what was expanded.
func (m *model) expanded(x dispatch.Expanded) {
	made := 0
	var list []sender.Delivery
	if x.Deliveries > 0 {
		list = m.list(history.DeliveryQuery{Limit: 200})
	}
	for _, read := range slices.Backward(list) { // in the order of the events
		if m.byPair[pair{read.Event.ID, read.Subscription}] == nil {
			made++
			m.made(read)
		}
	}
	m.equal(made, x.Deliveries, "Expanded.Deliveries, against the deliveries that are new in the list")
	if x.More {
		m.notePassed()
		for _, e := range m.events {
			e.late = e.late || !e.expanded && m.events[len(m.events)-1].created.After(e.created)
		}
		return
	}
	for _, e := range m.events {
		for _, s := range m.subs {
			m.check(!m.mustGet(s, e), "event %s was expanded without a delivery to %s", e.draft.ID, s.ID)
		}
		if !e.expanded {
			m.noteSkipped(e)
		}
		e.expanded = true
	}
}

// expandAll expands all events. A part of a large event may have deliveries for nobody.
func (m *model) expandAll() {
	for rounds := 0; m.expand(plenty, plenty); rounds++ {
		m.check(rounds < plenty, "expanding does not come to an end")
	}
}

// made notes a delivery that was made.
func (m *model) made(read sender.Delivery) {
	for _, e := range m.events {
		for _, s := range m.subs {
			if e.draft.ID != read.Event.ID || s.ID != read.Subscription || !m.waits(s, e) {
				continue
			}
			m.noteMade(s, e)
			d := &modelDelivery{id: read.ID, event: e, sub: s, status: sender.StatusPending, live: true, due: m.clock}
			if s.skips(e) {
				m.cancel(d)
				m.unswept = true
			} else {
				m.enter(d)
			}
			m.deliveries, m.byPair[pair{e.draft.ID, s.ID}] = append(m.deliveries, d), d
			return
		}
	}
	m.Fatalf("a delivery was made that should not be: event %s, subscription %s", read.Event.ID, read.Subscription)
}
