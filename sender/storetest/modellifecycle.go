package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

// filter draws a filter for a subscription of the model.
func (m *model) filter() []string {
	return [][]string{{"*"}, {"a.*"}, {"a.b", "b.*"}, {"b.c"}, {"a.*", "subscription.disabled"}}[m.rand.IntN(5)]
}

// any draws a subscription, deleted or not.
func (m *model) any() *modelSub { return m.subs[m.rand.IntN(len(m.subs))] }

func (m *model) subscribe() {
	there := 0
	for _, s := range m.subs {
		if !s.deleted {
			there++
		}
	}
	if there == modelSubs || len(m.subs) == 3*modelSubs {
		return
	}
	s := &modelSub{Subscription: m.subscription(m.owners[m.rand.IntN(len(m.owners))], m.filter()...), made: len(m.events), since: map[string]int{}}
	s.Filter = m.content()
	for _, pattern := range s.EventTypes {
		s.since[pattern] = len(m.events)
	}
	s.Settings = m.settings()
	m.inTx(func(tx any) error { return m.Store.CreateSubscriptionTx(m.ctx, tx, s.Subscription) })
	m.subs = append(m.subs, s)
}

// expect ends the test unless an operation on a subscription that may be deleted
// succeeds, or fails with ErrNotFound, and returns whether it succeeded.
func (m *model) expect(s *modelSub, err error, doing string) bool {
	if s.deleted {
		m.errorIs(err, sender.ErrNotFound, "%s a deleted subscription", doing)
		return false
	}
	m.noError(err, "%s a subscription that is %s", doing, s.Status)
	return true
}

func (m *model) unsubscribe() {
	s := m.any()
	if m.expect(s, m.try(func(tx any) error { return m.Store.DeleteSubscriptionTx(m.ctx, tx, s.ID) }), "deleting") {
		s.deleted = true
	}
}

func (m *model) update() {
	s := m.busy()
	n := s.Subscription
	n.URL, n.EventTypes = "https://example.com/"+m.name("new"), m.filter()
	if m.rand.IntN(3) == 0 {
		n.Filter = m.content()
	}
	n.Settings = m.settings()
	n.Settings.MaxInFlight = m.rand.IntN(3)
	if !m.expect(s, m.try(func(tx any) error { return m.Store.UpdateSubscriptionTx(m.ctx, tx, n) }), "updating") {
		return
	}
	since := map[string]int{}
	for _, pattern := range n.EventTypes {
		before, asked := s.since[pattern]
		if !asked {
			before = len(m.events)
		}
		since[pattern] = before
	}
	m.noteChange(s, &n)
	s.Subscription, s.since = n, since
}

// noteChange notes what a change meets.
func (m *model) noteChange(s *modelSub, n *sender.Subscription) {
	for _, d := range m.deliveries {
		if d.sub == s && d.inFlight(m.clock) && n.Settings.Order != s.Settings.Order {
			m.saw["order changed to "+string(n.Settings.Order)+", in flight"]++
		}
	}
}

func (m *model) set(s *modelSub, set sender.Settings) {
	n := s.Subscription
	n.Settings = set
	m.world.update(n)
	s.Subscription = n
}

// busy draws a subscription, half the time one with an attempt in flight.
func (m *model) busy() *modelSub {
	if i := slices.IndexFunc(m.deliveries, func(d *modelDelivery) bool { return d.inFlight(m.clock) && !d.cancelled() }); i >= 0 && m.rand.IntN(2) == 0 {
		return m.deliveries[i].sub
	}
	return m.any()
}

func (m *model) hold(status sender.SubscriptionStatus) {
	s := m.busy()
	err := m.tryHold(s.ID, status)
	refused := s.Status == sender.SubscriptionClosing || s.Status == sender.SubscriptionDisabled && status == sender.SubscriptionPaused
	switch {
	case refused && !s.deleted:
		m.errorIs(err, sender.ErrStatus, "making a subscription %s that is %s", status, s.Status)
	case m.expect(s, err, "holding") && s.Status != status:
		s.Status = status
		if status == sender.SubscriptionDisabled {
			s.DisabledAt, s.DisabledReason = m.clock, "because of disabled"
		}
	}
}

// anyHeld draws a subscription, half the time a held one.
func (m *model) anyHeld() *modelSub {
	if i := slices.IndexFunc(m.subs, func(s *modelSub) bool { return s.held() && !s.deleted }); i >= 0 && m.rand.IntN(2) == 0 {
		return m.subs[i]
	}
	return m.any()
}

func (m *model) resume() {
	s := m.anyHeld()
	r := sender.Resume{None: m.rand.IntN(3) == 0}
	if m.rand.IntN(2) == 0 {
		r.Since = m.published()
	}
	if m.rand.IntN(3) == 0 {
		r.NotBefore = m.published()
	}
	m.resumeWith(s, r)
}

// published draws when one of the events was published; zero: there are none.
func (m *model) published() time.Time {
	if len(m.events) == 0 {
		return time.Time{}
	}
	return m.events[m.rand.IntN(len(m.events))].created
}

func (m *model) resumeWith(s *modelSub, r sender.Resume) {
	behind := m.behindSince(r)
	oldest, first := m.oldest(s, r, behind)
	err := m.tryResume(s.ID, r)
	switch {
	case s.deleted:
		m.errorIs(err, sender.ErrNotFound, "resuming a deleted subscription")
		return
	case s.Status == sender.SubscriptionClosing:
		m.errorIs(err, sender.ErrStatus, "resuming a closing subscription")
		return
	case s.Status == sender.SubscriptionActive:
		m.noError(err, "resuming an active subscription")
		return
	case !oldest.IsZero() && oldest.Before(r.NotBefore) || !first.IsZero() && first.Before(r.NotBefore) && err != nil:
		var refused *sender.RetentionError
		m.saw["resume beyond its reach"]++
		m.check(errors.As(err, &refused), "resuming with %+v, when the oldest event was published at %v: got error %v", r, oldest, err)
		m.check(!refused.Published.Before(first.Add(-time.Microsecond)) && (oldest.IsZero() || !refused.Published.After(oldest.Add(time.Microsecond))), "Published is %v, want %v to %v", refused.Published, first, oldest)
		return
	}
	m.noError(err, "resuming with %+v", r)
	for _, d := range m.deliveries {
		switch {
		case d.sub != s || !d.live || d.cancelled():
		case takes(r, d.event) || behind[d.event.draft.ID] || m.tookBehindPruned(r, d):
			d.renew(m.clock)
			d.resumed = !d.leased.IsZero()
		case d.leased.IsZero():
			m.cancel(d)
			defer m.comeOut(d)
		default:
			d.dropped = true
		}
	}
	s.skipped = append(s.skipped, modelSkipped{Resume: r, upTo: len(m.events)})
	if s.Status == sender.SubscriptionDisabled {
		s.Health.Streak, s.Health.FailingSince, s.Health.Warned, s.Health.WarnedAt = 0, time.Time{}, 0, time.Time{}
		s.DisabledAt, s.DisabledReason = time.Time{}, ""
	}
	s.Status = sender.SubscriptionActive
	m.world.sweep(100) // until then what is skipped is in its line
	defer m.sweepFrom(time.Time{})
}

// tookBehindPruned tells whether the store has taken a delivery because its event is behind one
// that was pruned meanwhile. The feed does not show where that was.
func (m *model) tookBehindPruned(r sender.Resume, d *modelDelivery) bool {
	pruned := func(e *modelEvent) bool { return e.gone && takes(r, e) }
	if r.None || !d.event.late || !slices.ContainsFunc(m.events, pruned) {
		return false
	}
	status := m.get(d.id).Status
	return status == sender.StatusPending || status == sender.StatusAwaitingRetry
}

// behindSince finds the events that are in the feed behind one that was published at Since
// or later: see sender.Resume.
func (m *model) behindSince(r sender.Resume) map[string]bool {
	behind, since := map[string]bool{}, false
	q := feed.StoreQuery{Viewer: sender.Operator, Limit: feed.MaxPage, Heads: true}
	for !r.None && !r.Since.IsZero() {
		page, err := m.Store.Feed(m.ctx, q)
		m.noError(err, "reading the feed")
		for _, e := range page.Events {
			since = since || !e.CreatedAt.Before(r.Since)
			behind[e.ID] = since
		}
		if q.After = page.Last; page.Last == page.Head {
			break
		}
	}
	return behind
}

// oldest returns when the oldest event was published that a resume would send. first is
// when the oldest was published that may count as such. An event that is not expanded yet
// may count, also if the filter will not match it, but parts of the expansion may have
// passed over the subscription already. If an event may be expanded after a later one, a
// store may not see it.
func (m *model) oldest(s *modelSub, r sender.Resume, behind map[string]bool) (oldest, first time.Time) {
	older := func(than *time.Time, e *modelEvent) {
		if than.IsZero() || e.created.Before(*than) {
			*than = e.created
		}
	}
	for _, e := range m.events {
		d := m.byPair[pair{e.draft.ID, s.ID}]
		switch {
		case !takes(r, e) && (d == nil || !behind[e.draft.ID]):
		case d != nil && d.live && !d.cancelled() || m.mustGet(s, e) && !s.skips(e):
			if !e.late {
				older(&oldest, e)
			}
			older(&first, e)
		case d == nil && !e.expanded && s.asks(e) && !s.skips(e):
			older(&first, e)
		}
	}
	return oldest, first
}

func (m *model) close() {
	s := m.any()
	if m.expect(s, m.tryClose(s.ID), "closing") {
		s.close(len(m.events))
	}
}

func (s *modelSub) close(events int) {
	switch {
	case s.held():
		s.deleted = true
	case s.Status == sender.SubscriptionActive:
		s.Status, s.last = sender.SubscriptionClosing, events
	}
}

// deleteSubscriber deletes one of several owners, and registers another.
func (m *model) deleteSubscriber() {
	owner := m.owners[0]
	m.world.deleteSubscriber(owner)
	m.owners = append(slices.Clone(m.owners[1:]), m.world.subscriber())
	for _, s := range m.subs {
		if s.Subscriber == owner && !s.deleted {
			s.close(len(m.events))
		}
	}
	m.errorIs(m.tryDeleteSubscriber(owner), sender.ErrNotFound, "deleting a deleted subscriber")
}

// changeAndRollBack changes a subscription in a transaction that rolls back.
func (m *model) changeAndRollBack() {
	s := m.anyHeld()
	failed := errors.New("rolled back")
	change := m.rand.IntN(6)
	err := m.try(func(tx any) error {
		// Errors because of the status are as good: no change must remain.
		switch change {
		case 0:
			n := s.Subscription
			n.URL, n.EventTypes = "https://example.com/rolled-back", m.filter()
			_ = m.Store.UpdateSubscriptionTx(m.ctx, tx, n)
		case 1:
			_ = m.Store.HoldSubscriptionTx(m.ctx, tx, s.ID, sender.SubscriptionDisabled, "rolled back")
		case 2:
			_ = m.Store.ResumeSubscriptionTx(m.ctx, tx, s.ID, sender.Resume{})
		case 3:
			_ = m.Store.ResumeSubscriptionTx(m.ctx, tx, s.ID, sender.Resume{None: true})
		case 4:
			_ = m.Store.CloseSubscriptionTx(m.ctx, tx, s.ID)
		case 5:
			_ = m.Store.DeleteSubscriberTx(m.ctx, tx, s.Subscriber)
		}
		return failed
	})
	m.errorIs(err, failed, "InTx whose function failed")
}
