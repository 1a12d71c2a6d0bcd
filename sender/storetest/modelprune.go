package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// pruneOld makes a pass under some ages. Nothing happens at half seconds, so that nothing is
// just as old.
func (m *model) pruneOld() {
	age := func() time.Duration {
		return []time.Duration{never, never, time.Second / 2, 20*time.Minute + time.Second/2, 2*time.Hour + time.Second/2}[m.rand.IntN(5)]
	}
	m.pruneBefore(m.pruneParams(ages{delivered: age(), dead: age(), events: age(), notices: age(), objects: age()}, 1+m.rand.IntN(5)))
}

func (m *model) pruneBefore(p dispatch.PruneParams) {
	got, _ := m.pruneBy(p)
	m.prunedDeliveries(p, got)
	m.prunedEvents(p, got)
	m.prunedReplays(p, got)
	m.equal(got.Notices, 0, "notices pruned that nobody has acknowledged")
}

// mustGo tells whether a pass may not leave what is old of an event.
func (m *model) mustGo(e *modelEvent) bool {
	whole := !slices.ContainsFunc(m.events[:e.at+1], func(e *modelEvent) bool { return !e.expanded })
	return whole && !e.late
}

// prunedDeliveries takes over which deliveries a pass has removed.
func (m *model) prunedDeliveries(p dispatch.PruneParams, got dispatch.Pruned) {
	left := map[string]bool{}
	for _, d := range m.list(history.DeliveryQuery{Limit: 200}) {
		left[d.ID] = true
	}
	var want dispatch.Pruned
	for _, d := range m.deliveries {
		m.check(left[d.id] || d.old(p), "%s was pruned, which is %s, and ended at %v", d.id, d.reads(), d.ended)
		m.check(!left[d.id] || !d.old(p) || !m.mustGo(d.event), "%s was not pruned, which is %s, and ended at %v", d.id, d.status, d.ended)
		if !left[d.id] {
			m.saw["pruned"]++
		}
		switch d.gone = !left[d.id]; {
		case d.gone && d.status == sender.StatusDeadLettered:
			want.DeadLetters++
		case d.gone:
			want.Deliveries++
		}
	}
	m.equal([]int{got.Deliveries, got.DeadLetters}, []int{want.Deliveries, want.DeadLetters}, "deliveries and dead letters that Pruned counts")
	m.deliveries = slices.DeleteFunc(m.deliveries, func(d *modelDelivery) bool { return d.gone })
}

// old tells whether a pass removes a delivery.
func (d *modelDelivery) old(p dispatch.PruneParams) bool {
	switch {
	case d.live:
		return false
	case d.status == sender.StatusDeadLettered:
		return d.ended.Before(p.DeadLetters)
	case d.status == sender.StatusDelivered:
		return d.began.Before(p.Delivered)
	}
	return d.ended.Before(p.Delivered)
}

// prunedEvents does the same with events.
func (m *model) prunedEvents(p dispatch.PruneParams, got dispatch.Pruned) {
	has := map[*modelEvent]bool{} // deliveries
	for _, d := range m.deliveries {
		has[d.event] = true
	}
	last := map[sender.Object]int64{}
	for _, e := range m.events {
		last[e.draft.Object] = e.version
	}
	left := m.listEvents()
	gone := 0
	for _, e := range m.events {
		if e.gone {
			continue
		}
		old := !has[e] && e.created.Before(p.Events)
		m.check(left[e.draft.ID] || old, "event %s was pruned, whose deliveries are there: %v", e.draft.ID, has[e])
		m.check(!left[e.draft.ID] || !old || !m.mustGo(e), "event %s was not pruned", e.draft.ID)
		if left[e.draft.ID] {
			continue
		}
		e.gone = true
		gone++
		m.saw["event pruned"]++
		if !p.Objects.IsZero() && e.version == last[e.draft.Object] {
			m.floor = max(m.floor, e.version)
		}
	}
	m.equal(got.Events, gone, "events that Pruned counts")
}

// prunedReplays does the same with replays.
func (m *model) prunedReplays(p dispatch.PruneParams, got dispatch.Pruned) {
	want := map[string]bool{}
	for _, r := range m.replays {
		want[r.ID] = true
	}
	gone := 0
	for id, at := range m.over {
		if at.Before(p.Events) {
			gone++
			delete(m.over, id)
		} else {
			want[id] = true
		}
	}
	there := map[string]bool{}
	for _, r := range m.allReplays() {
		there[r.ID] = true
	}
	m.equal(there, want, "replays after a pass that prunes what is older than %v", p.Events)
	m.equal(got.Replays, gone, "replays that Pruned counts")
}

// listEvents lists the events that there are, and compares what was redacted.
func (m *model) listEvents() (there map[string]bool) {
	there = map[string]bool{}
	redacted := map[string]bool{}
	for _, e := range m.events {
		redacted[e.draft.ID] = e.redacted
	}
	for q := (history.EventQuery{Limit: 200}); ; {
		page, next, err := m.Store.Events(m.ctx, q)
		m.noError(err, "listing events")
		for _, e := range page {
			there[e.ID] = true
			m.equal(e.Redacted, redacted[e.ID], "Redacted of event %s", e.ID)
		}
		if q.Cursor = next; next == "" {
			return there
		}
	}
}

// redactSome redacts the events of an object, or those that are addressed to a subscriber.
func (m *model) redactSome() {
	p := history.RedactParams{Object: m.object(), Limit: plenty}
	if m.rand.IntN(2) == 0 {
		p.Object, p.Subscriber = sender.Object{}, m.owners[m.rand.IntN(len(m.owners))]
	}
	got, err := m.Store.Redact(m.ctx, p)
	m.noError(err, "redacting")
	var want history.Redacted
	for _, e := range slices.Backward(m.events) {
		named := e.draft.Object == p.Object || p.Subscriber != "" && e.draft.Subscriber == p.Subscriber
		if !named || e.gone || e.redacted {
			continue
		}
		e.redacted = true
		m.saw["redacted"]++
		want.Events++
		for _, d := range m.deliveries {
			if d.event == e && d.live && d.leased.IsZero() { // what is in flight ends by itself
				m.cancel(d)
				m.comeOut(d)
				want.Deliveries++
			}
		}
	}
	m.equal(got, want, "redacted by %+v", p)
}
