package memory

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// Counts implements history.Store. It looks at every subscription and at every
// notice.
func (s *Store) Counts(ctx context.Context) (c history.Counts, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		c = s.counts(s.now())
		return nil
	})
	return c, err
}

func (s *Store) counts(now time.Time) history.Counts {
	c := history.Counts{
		At: now, Subscriptions: map[sender.SubscriptionStatus]int64{},
	}
	for _, e := range s.events[s.expanding:] {
		if !e.expanded {
			c.Unexpanded++
		}
	}
	for _, sub := range s.subscriptions {
		c.DeadLettered += sub.DeadLettered
		if sub.deleted {
			continue
		}
		c.Subscriptions[sub.Status]++
		live := sub.backlog()
		if sub.holds() {
			c.Held += live
			continue
		}
		lane := sub.Health.Lane
		c.Live += live
		c.Lanes[lane].Live += live
		if sub.again.After(now) || sub.full(now) {
			continue
		}
		for _, q := range []*queue[*delivery]{&sub.live, &sub.replayed} {
			if due := oldestDue(q.items, 0, now.Add(1)); !due.After(now) {
				c.Due(lane, due)
			}
		}
	}
	for _, n := range s.notices {
		if n.AcknowledgedAt.IsZero() {
			c.Notices++
		}
	}
	return c
}

// oldestDue returns since when the oldest delivery is due in a heap's part below an index, or
// before, if nothing is older. It need not be the first: what was given back goes before older
// ones, and one of a large event is due later than its place says. None is due before its
// place, and nearly always the first is all that is looked at.
func oldestDue(heap items[*delivery], at int, before time.Time) time.Time {
	if at >= len(heap) || !heap[at].live.returned && !heap[at].live.position().Before(before) {
		return before
	}
	if due := heap[at].live.due; due.Before(before) {
		before = due
	}
	return oldestDue(heap, 2*at+2, oldestDue(heap, 2*at+1, before))
}

// full tells whether a subscription has as many attempts in flight as it may have.
func (sub *subscription) full(now time.Time) bool {
	most := sub.Settings.MaxInFlight
	return most > 0 && sub.inFlight(now) >= most
}
