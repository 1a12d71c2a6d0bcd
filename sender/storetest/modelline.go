package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// modelHorizons are horizons of subscriptions' own. Nothing happens at half seconds.
var modelHorizons = []time.Duration{10*time.Minute + time.Second/2, 3*time.Hour + time.Second/2}

// settings draws settings, most of them with an order, and some with a policy of their own.
func (m *model) settings() sender.Settings {
	s := []sender.Settings{
		{}, {}, {}, {Order: sender.OrderLatest}, {Order: sender.OrderLatest},
		{Order: sender.OrderObject, HoldTries: 3, HoldFor: time.Hour}, {Order: sender.OrderObject, HoldDead: true}, {Order: sender.OrderObject, HoldDead: true},
	}[m.rand.IntN(8)]
	s.PayloadVersion = m.pin()
	switch m.rand.IntN(6) {
	case 0:
		s.RetryDelays, s.Horizon = []time.Duration{time.Minute, time.Hour}, modelHorizons[m.rand.IntN(len(modelHorizons))]
	case 1:
		s.Gone = sender.GoneStops
	case 2:
		s.Rate = []float64{0.5, 1. / 60}[m.rand.IntN(2)]
	}
	return s
}

// holdsDead tells whether a dead letter of the subscription holds back later versions.
func (s *modelSub) holdsDead() bool {
	return !s.deleted && s.Settings.Order == sender.OrderObject && s.Settings.HoldDead && s.Status != sender.SubscriptionClosing
}

// line returns the others in the line of a delivery, in their order.
func (m *model) line(d *modelDelivery) (line []*modelDelivery) {
	for _, e := range m.events {
		other := m.byPair[pair{e.draft.ID, d.sub.ID}]
		if other != nil && other != d && other.lined && e.draft.Object == d.event.draft.Object {
			line = append(line, other)
		}
	}
	return line
}

func (d *modelDelivery) superseded() sender.Status {
	if d.single {
		return sender.StatusDelivered
	}
	return sender.StatusSuperseded
}

// enter puts a delivery that is made or sent again into the line of its object.
func (m *model) enter(d *modelDelivery) {
	order := d.sub.Settings.Order
	if order == sender.OrderRelaxed {
		m.comeOut(d)
		return
	}
	line := m.line(d)
	for _, other := range line {
		if order == sender.OrderLatest && other.live && other.event.at > d.event.at {
			m.saw["superseded at once"]++
			m.end(d, d.superseded())
			m.comeOut(d)
			return
		}
	}
	if order == sender.OrderLatest {
		m.supersede(d)
	}
	d.lined = true
	m.turns++
	d.entered = m.turns
	for _, other := range m.line(d) {
		switch {
		case other.event.at < d.event.at || !other.leased.IsZero():
			d.behind = true
		case !d.behind && other.live:
			other.behind = true
		}
	}
}

// supersede ends what is before a delivery in its line, except what is in flight.
func (m *model) supersede(d *modelDelivery) {
	for _, other := range m.line(d) {
		switch {
		case other.event.at > d.event.at || !other.leased.IsZero():
		case other.live:
			m.saw["superseded"]++
			m.end(other, other.superseded())
		default:
			other.stops, other.lined = false, false
		}
	}
}

// comeOut lets the first of the line of a delivery come out, if nothing is out. Under
// OrderLatest the newest one comes out.
func (m *model) comeOut(d *modelDelivery) {
	if d.sub.deleted {
		return
	}
	var first, newest *modelDelivery
	for _, e := range m.events {
		other := m.byPair[pair{e.draft.ID, d.sub.ID}]
		if other == nil || !other.lined || e.draft.Object != d.event.draft.Object {
			continue
		}
		if other.live && !other.behind {
			return
		}
		if first == nil {
			first = other
		}
		if other.live {
			newest = other
		}
	}
	switch {
	case first == nil || !first.live:
	case d.sub.Settings.Order == sender.OrderLatest:
		m.supersede(newest)
		newest.behind = false
	default:
		first.behind = false
	}
}

// overtaken tells whether a newer version waits behind a delivery, and its subscription
// wants the latest alone.
func (m *model) overtaken(d *modelDelivery) bool {
	for _, other := range m.line(d) {
		if d.lined && d.sub.Settings.Order == sender.OrderLatest && other.live && other.event.at > d.event.at {
			return true
		}
	}
	return false
}

// yields tells whether an earlier version waits behind a delivery.
func (m *model) yields(d *modelDelivery) bool {
	line := m.line(d)
	return d.lined && len(line) > 0 && line[0].live && line[0].event.at < d.event.at
}

// inOrder ends the test if a delivery is claimed while another one is out, before an earlier
// one, or after a later one that was begun since it came into its line.
func (m *model) inOrder(d *modelDelivery) {
	if d == nil || !d.lined {
		return
	}
	for _, other := range m.line(d) {
		m.check(!other.live || other.event.at > d.event.at && other.leased.IsZero(), "version %d was claimed while version %d of its object had not ended", d.event.version, other.event.version)
	}
	for _, e := range m.events {
		later := m.byPair[pair{e.draft.ID, d.sub.ID}]
		if later != nil && e.draft.Object == d.event.draft.Object && e.at > d.event.at {
			m.check(later.begun < d.entered, "version %d was claimed after version %d of its object", d.event.version, later.event.version)
		}
	}
	m.turns++
	d.begun = m.turns
}

// free lets go on what dead letters hold back that are not to do so any more, except for what
// is too old.
func (m *model) free(notBefore time.Time) {
	for _, d := range m.byPair {
		if d.freeable() {
			m.saw["freed by a sweep"]++
			m.expire(d, notBefore)
			d.stops, d.lined = false, false
			m.comeOut(d)
		}
	}
}

// freeable tells of a dead letter in a line that it is not to hold back others any more.
func (d *modelDelivery) freeable() bool { return d.stops && (d.gone || !d.sub.holdsDead()) }

// expire ends what is behind a dead letter, if that is the first of its line, and too old.
func (m *model) expire(dead *modelDelivery, notBefore time.Time) {
	if dead.sub.deleted || dead.sub.held() {
		return
	}
	var old []*modelDelivery
	newer := false
	for _, d := range m.line(dead) {
		if d.event.at < dead.event.at && d.stops {
			return
		}
		if d.event.at < dead.event.at || d.freeable() {
			continue
		}
		if newer = d.live; d.stops || !d.event.created.Before(notBefore) {
			break
		}
		old, newer = append(old, d), false
	}
	for i, d := range old {
		end := sender.StatusDeadLettered
		switch {
		case d.single:
			end = sender.StatusDelivered
		case dead.sub.Settings.Order == sender.OrderLatest && (newer || i < len(old)-1):
			end = sender.StatusSuperseded
		}
		d.lined = false
		m.end(d, end)
	}
}

func (m *model) passOver() {
	if len(m.deliveries) == 0 {
		return
	}
	d := m.deliveries[m.rand.IntN(len(m.deliveries))]
	for _, other := range m.deliveries {
		if other.stops && m.rand.IntN(2) == 0 {
			d = other
		}
	}
	var notBefore time.Time
	if d.stops && m.rand.IntN(2) == 0 {
		notBefore = []time.Time{m.published(), m.clock}[m.rand.IntN(2)]
	}
	err := m.Store.PassOver(m.ctx, d.id, notBefore)
	if d.sub.deleted {
		return // a sweep may have freed it
	}
	if !d.stops {
		m.errorIs(err, sender.ErrStatus, "passing over %s, which is %s", d.id, d.status)
		return
	}
	for _, next := range m.line(d) {
		if next.live && next.event.at > d.event.at {
			if next.event.created.Before(notBefore) {
				m.saw["passed over beyond its reach"]++
				m.errorIs(err, sender.ErrRetention, "passing over %s, behind which an event was published before %v", d.id, notBefore)
				return
			}
			break
		}
	}
	m.noError(err, "passing over %s", d.id)
	m.saw["passed over"]++
	d.stops, d.lined = false, false
	m.comeOut(d)
}
