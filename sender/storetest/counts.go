package storetest

import (
	"maps"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func (m *model) compareCounts() {
	got, err := m.Store.Counts(m.ctx)
	m.noError(err, "counting")
	want := history.Counts{At: got.At, OldestDue: got.OldestDue, Subscriptions: map[sender.SubscriptionStatus]int64{}, Notices: int64(m.noticed)}
	limited := map[string]bool{}
	m.inTx(func(tx any) error {
		list, err := m.Store.SubscriptionsTx(m.ctx, tx, "", "", plenty)
		for _, s := range list {
			want.Subscriptions[s.Status]++
			if s.Status == sender.SubscriptionActive || s.Status == sender.SubscriptionClosing {
				want.Live += s.Backlog
				want.Lanes[s.Health.Lane].Live += s.Backlog
			} else {
				want.Held += s.Backlog
			}
			limited[s.ID] = s.Settings.MaxInFlight > 0 || s.Settings.Rate > 0
		}
		return err
	})
	// Bounds of OldestDue. A store may leave out deliveries that are limited. If several of
	// a subscription were never claimed, it may look at the first event's alone. This is due
	// later than others if its event is large and was expanded in parts.
	var earliest, latest time.Time
	unclaimed := map[string]time.Time{}
	sooner := func(due time.Time) {
		if latest.IsZero() || due.Before(latest) {
			latest = due
		}
	}
	for _, d := range m.list(history.DeliveryQuery{Limit: 200}) {
		if d.Status == sender.StatusDeadLettered {
			want.DeadLettered++
		}
		due := d.NextAttemptAt
		if due.IsZero() || due.After(m.clock) || d.InFlight {
			continue
		}
		if earliest.IsZero() || due.Before(earliest) {
			earliest = due
		}
		switch {
		case limited[d.Subscription]:
		case d.AttemptCount == 0:
			unclaimed[d.Subscription] = due // the newest events come first
		default:
			sooner(due)
		}
	}
	for _, due := range unclaimed {
		sooner(due)
	}
	for _, e := range m.events {
		if !e.expanded {
			want.Unexpanded++
		}
	}
	m.check(got.Unexpanded <= want.Unexpanded, "Unexpanded is %d, of %d events at most", got.Unexpanded, want.Unexpanded)
	want.Unexpanded = got.Unexpanded
	for lane := range want.Lanes {
		want.Lanes[lane].OldestDue = got.Lanes[lane].OldestDue
	}
	m.equal(got, want, "counts")
	m.equal(oldestOf(got.Lanes), got.OldestDue, "OldestDue, by the lanes")
	switch {
	case got.OldestDue.IsZero():
		m.check(latest.IsZero(), "OldestDue is zero, and a delivery has been due since %v", latest)
	default:
		m.check(!earliest.IsZero() && !got.OldestDue.Before(earliest.Add(-time.Microsecond)), "OldestDue is %v, and the oldest is due at %v", got.OldestDue, earliest)
		m.check(latest.IsZero() || !got.OldestDue.After(latest.Add(time.Microsecond)), "OldestDue is %v, and a delivery is due since %v", got.OldestDue, latest)
	}
}

// oldestOf returns since when the oldest delivery of all lanes is due.
func oldestOf(lanes [sender.Lanes]history.LaneCounts) (oldest time.Time) {
	for _, l := range lanes {
		if oldest.IsZero() || !l.OldestDue.IsZero() && l.OldestDue.Before(oldest) {
			oldest = l.OldestDue
		}
	}
	return oldest
}

// counted ends the test unless Counts returns these figures.
func (w *world) counted(want history.Counts, when string) {
	w.Helper()
	got, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting %s", when)
	w.sameTime(got.At, w.now(), "At of the counts %s", when)
	w.sameTime(got.OldestDue, want.OldestDue, "OldestDue %s", when)
	live := int64(0)
	for _, l := range got.Lanes {
		live += l.Live
	}
	w.equal(live, want.Live, "Live of the lanes %s", when)
	w.equal(oldestOf(got.Lanes), got.OldestDue, "OldestDue of the lanes %s", when)
	got.Lanes = want.Lanes
	w.check(maps.Equal(got.Subscriptions, want.Subscriptions), "subscriptions %s: got %v, want %v", when, got.Subscriptions, want.Subscriptions)
	got.At, got.OldestDue, got.Subscriptions = want.At, want.OldestDue, want.Subscriptions
	w.equal(got, want, "counts %s", when)
}

func queryCounts(w *world) {
	type by = map[sender.SubscriptionStatus]int64
	w.counted(history.Counts{Subscriptions: by{}}, "of nothing")
	owner := w.subscriber()
	a, b := w.subscribe(owner, "*"), w.subscribe(owner, "a.*")
	w.publish(w.draft("a.b"), w.draft("a.b"))
	w.counted(history.Counts{Subscriptions: by{"active": 2}, Unexpanded: 2}, "before the expansion")
	first := w.now()
	w.expand()
	w.Advance(time.Minute)
	w.counted(history.Counts{Subscriptions: by{"active": 2}, Live: 4, OldestDue: first}, "once expanded")
	w.pause(a)
	w.counted(history.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 2, Held: 2, OldestDue: first}, "one of them paused")
	w.publish(w.draft("a.c"))
	w.expand()
	w.counted(history.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 3, Held: 3, OldestDue: first}, "with an event for both")
	w.decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h, Notices: []sender.Notice{{Kind: sender.NoticeDeadLettered}}}
	}
	claimed := w.claim(plenty)
	w.counted(history.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 3, Held: 3}, "in flight")
	w.disable(b)
	w.record(result(claimed[0], sender.ClassStatus))
	w.counted(history.Counts{Subscriptions: by{"disabled": 1, "paused": 1}, Held: 5, DeadLettered: 1, Notices: 1}, "with one dead-lettered")
	w.Advance(2 * lease) // the two others are lost
	w.resume(a, sender.Resume{})
	w.counted(history.Counts{Subscriptions: by{"disabled": 1, "active": 1}, Live: 3, Held: 2, DeadLettered: 1, Notices: 1, OldestDue: w.now()}, "one of them resumed")
	w.unsubscribe(b)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Live: 3, DeadLettered: 1, Notices: 1, OldestDue: w.now()}, "one of them deleted")
	w.sweep(100)
	w.counted(history.Counts{Subscriptions: by{"active": 1}, Live: 3, DeadLettered: 1, Notices: 1, OldestDue: w.now()}, "and swept")
	w.close(a)
	w.counted(history.Counts{Subscriptions: by{"closing": 1}, Live: 3, DeadLettered: 1, Notices: 1, OldestDue: w.now()}, "the other closing")
	w.undone(func(tx any) error { return w.Store.DeleteSubscriptionTx(w.ctx, tx, a) })
	w.counted(history.Counts{Subscriptions: by{"closing": 1}, Live: 3, DeadLettered: 1, Notices: 1, OldestDue: w.now()}, "a deletion rolled back")

	c := w.read(w.subscribe(owner, "only.addressed"))
	c.Settings.MaxInFlight = 1
	w.update(c)
	w.backlog(owner, c.ID, 2)
	since := w.now()
	w.claim(plenty)
	w.Advance(time.Second)
	w.counted(history.Counts{Subscriptions: by{"closing": 1, "active": 1}, Live: 5, DeadLettered: 1, Notices: 1}, "with one that waits for another")
	c.Settings.MaxInFlight = 2
	w.update(c)
	w.counted(history.Counts{Subscriptions: by{"closing": 1, "active": 1}, Live: 5, DeadLettered: 1, Notices: 1, OldestDue: since}, "with one that waits no more, as the limit is higher")
}

func queryCountsGivenBack(w *world) {
	owner, sub := w.ordered(sender.Settings{Order: sender.OrderObject})
	since := w.now()
	w.versions(owner, sub, "a", "a")
	ahead := w.claimOne()
	w.Advance(time.Second)
	younger := w.claims("younger ones", w.versions(owner, sub, "b", "c", "d")...)
	w.record(result(ahead, sender.ClassNone)) // so that the second one comes out
	w.giveBack(younger...)
	w.counted(history.Counts{Subscriptions: map[sender.SubscriptionStatus]int64{"active": 1}, Live: 4, OldestDue: since}, "with younger ones given back")
}
