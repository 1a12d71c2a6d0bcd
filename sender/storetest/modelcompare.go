package storetest

import (
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// compare compares all lists with the model.
func (m *model) compare() {
	m.compareCounts()
	m.compareDeliveries()
	m.compareSubscriptions()
}

func (m *model) compareDeliveries() {
	list := m.list(history.DeliveryQuery{Limit: 200})
	m.equal(len(list), len(m.deliveries), "number of deliveries")
	for _, read := range list {
		d := m.byPair[pair{read.Event.ID, read.Subscription}]
		m.check(d != nil && d.id == read.ID && !d.gone, "delivery %s of event %s to %s has another id, or should not be", read.ID, read.Event.ID, read.Subscription)
		if d.live && d.cancelled() && d.lapsed(m.clock) && read.AttemptCount > len(d.attempts) {
			m.cancel(d) // a store may notice that at any time
			m.comeOut(d)
		}
		if d.live && d.single && d.reads() == d.status {
			m.check(read.Status != sender.StatusDeadLettered && read.Status != sender.StatusCancelled && read.Status != sender.StatusHeld, "status of %s, which was delivered and is sent again: %s", d.id, read.Status)
		} else {
			m.equal(read.Status, d.reads(), "status of %s", d.id)
		}
		last := sender.ClassNone
		if n := len(d.attempts); n > 0 {
			last = d.attempts[n-1]
		}
		m.equal([]any{read.Version, read.AttemptCount, read.LastErrorClass}, []any{d.event.version, len(d.attempts), last}, "version, attempts and last class of %s", d.id)
		m.sameEvent(read.Event, d.event.draft, d.event.created)
		m.equal(read.Redacted, d.event.redacted, "Redacted of %s", d.id)
		m.equal(read.URL, d.sub.URL, "URL of %s", d.id)
		m.compareDue(d, read)
	}
}

// compareAttempts compares the attempts of a delivery that has ended, and its body.
func (m *model) compareAttempts(d *modelDelivery) {
	read := m.get(d.id)
	m.equal(read.Status, d.reads(), "status of %s in the end", d.id)
	m.check(!d.live, "%s is still live", d.id)
	if d.event.redacted {
		m.check(read.Body == nil, "%s has a body, and is redacted", d.id)
	} else {
		m.sameBody(read.Body, d.event.draft, d.event.version)
	}
	m.equal(len(read.Attempts), len(d.attempts), "number of attempts of %s", d.id)
	for i, a := range read.Attempts {
		m.equal([]any{a.Number, a.Class}, []any{i + 1, d.attempts[i]}, "number and class of attempt %d of %s", i+1, d.id)
		m.check(!d.event.redacted || len(a.Snippet) == 0 && a.Headers == "", "attempt %d of %s has a snippet or headers, and is redacted", i+1, d.id)
	}
}

func (m *model) compareDue(d *modelDelivery, read sender.Delivery) {
	switch {
	case !d.live:
		m.check(!read.InFlight && read.NextAttemptAt.IsZero(), "%s has ended, but is in flight, or has a next attempt", d.id)
		return
	case d.cancelled():
		m.check(read.NextAttemptAt.IsZero(), "%s is cancelled, but has a next attempt", d.id)
		return
	case d.sub.held():
		m.check(read.NextAttemptAt.IsZero(), "%s is held, but has a next attempt", d.id)
	case d.behind:
		m.check(read.NextAttemptAt.IsZero(), "%s waits for another one about its object, but has a next attempt", d.id)
	case d.back && len(d.sub.skipped) > 0: // it may be due since a resume, and come after what that has taken
		m.check(!read.NextAttemptAt.Before(d.event.created) && !read.NextAttemptAt.After(m.clock), "NextAttemptAt of %s, which was given back, is %v", d.id, read.NextAttemptAt)
	case d.leased.IsZero():
		m.sameTime(read.NextAttemptAt, d.due, "NextAttemptAt of %s", d.id)
	}
	if !d.lapsed(m.clock) {
		m.equal(read.InFlight, d.inFlight(m.clock), "whether %s is in flight", d.id)
	}
}

func (m *model) compareSubscriptions() {
	var list []sender.Subscription
	m.inTx(func(tx any) (err error) {
		list, err = m.Store.SubscriptionsTx(m.ctx, tx, "", "", plenty)
		return err
	})
	at := 0
	for _, s := range m.subs {
		if at == len(list) || list[at].ID != s.ID {
			if !s.deleted {
				m.check(m.mayBeGone(s), "subscription %s, which is %s, is not listed", s.ID, s.Status)
				s.deleted = true
			}
			continue
		}
		m.check(!s.deleted, "subscription %s is listed, and was deleted", s.ID)
		got, want := list[at], s.Subscription
		at++
		unswept := int64(0) // at most
		for _, d := range m.deliveries {
			switch {
			case d.sub != s:
			case d.live && d.cancelled(), d.status == sender.StatusCancelled:
				unswept++
			case d.live:
				want.Backlog++
			case d.status == sender.StatusDeadLettered:
				want.DeadLettered++
			}
		}
		m.check(got.Backlog >= want.Backlog && got.Backlog <= want.Backlog+unswept, "Backlog of %s is %d, want %d, and up to %d that are not swept", s.ID, got.Backlog, want.Backlog, unswept)
		got.Backlog = want.Backlog
		m.sameTime(got.DisabledAt, want.DisabledAt, "DisabledAt of %s", s.ID)
		m.sameHealth(got.Health, want.Health, s.ID)
		got.DisabledAt, got.Health = want.DisabledAt, want.Health
		m.sameSubscription(got, want)
	}
	m.equal(at, len(list), "number of subscriptions listed")
}

func (w *world) sameHealth(got, want sender.Health, of string) {
	w.Helper()
	w.sameTime(got.FailingSince, want.FailingSince, "FailingSince of %s", of)
	w.sameTime(got.LastFailure, want.LastFailure, "LastFailure of %s", of)
	w.sameTime(got.LastSuccess, want.LastSuccess, "LastSuccess of %s", of)
	w.sameTime(got.WarnedAt, want.WarnedAt, "WarnedAt of %s", of)
	w.equal([]any{got.Lane, got.Streak, got.Warned}, []any{want.Lane, want.Streak, want.Warned}, "lane, streak and warned of %s", of)
}

// mayBeGone tells whether a closing subscription has got all its events.
func (m *model) mayBeGone(s *modelSub) bool {
	for _, d := range m.deliveries {
		if d.sub == s && d.live && !d.cancelled() {
			return false
		}
	}
	for _, e := range m.events {
		if m.mustGet(s, e) {
			return false
		}
	}
	return s.Status == sender.SubscriptionClosing
}

// mustBeGone tells whether a sweep must have deleted a closing subscription.
func (m *model) mustBeGone(s *modelSub) bool {
	for _, d := range m.deliveries {
		if d.sub == s && d.live {
			return false
		}
	}
	for _, e := range m.events[:s.last] {
		if !e.expanded {
			return false
		}
	}
	return m.mayBeGone(s)
}

func (m *model) sweep() {
	var notBefore time.Time
	if len(m.events) > 0 && m.ages.IntN(3) == 0 {
		notBefore = m.events[m.ages.IntN(len(m.events))].created
	}
	m.sweepFrom(notBefore)
}

func (m *model) sweepFrom(notBefore time.Time) {
	// A store may remember how far it has swept. Only after a sweep that finds nothing behind
	// that does it look at what came back before.
	p := dispatch.SweepParams{Limit: 1 + m.rand.IntN(3), NotBefore: notBefore}
	m.noticed += len(m.sweepBy(p).Notices) + len(m.sweepBy(p).Notices)
	for _, d := range m.deliveries {
		if d.live && d.cancelled() && !d.inFlight(m.clock) && m.swept(d) {
			m.cancel(d)
			m.comeOut(d)
		}
	}
	m.free(notBefore)
	for _, s := range m.subs {
		switch {
		case s.deleted:
		case m.mustBeGone(s):
			s.deleted = true
		case m.mayBeGone(s):
			err := m.try(func(tx any) error {
				_, err := m.Store.SubscriptionTx(m.ctx, tx, sender.SubscriptionKey{ID: s.ID})
				return err
			})
			s.deleted = errors.Is(err, sender.ErrNotFound)
		}
	}
}

// swept tells whether a sweep has ended a delivery that is cancelled, and not in flight. A lost
// attempt of what was redacted it may leave to the next claim.
func (m *model) swept(d *modelDelivery) bool {
	return d.sub.deleted || d.dropped || m.get(d.id).AttemptCount > len(d.attempts)
}

func (m *model) advance() {
	by := []time.Duration{time.Second, lease - time.Second, lease, 10 * time.Minute, time.Hour}[m.rand.IntN(5)]
	m.Advance(by)
	m.clock = m.clock.Add(by)
}
