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
		for _, first := range []*delivery{sub.live.first(), sub.replayed.first()} {
			if first != nil && !first.live.due.After(now) {
				c.Due(lane, first.live.due)
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

// full tells whether a subscription has as many attempts in flight as it may have.
func (sub *subscription) full(now time.Time) bool {
	most := sub.Settings.MaxInFlight
	return most > 0 && sub.inFlight(now) >= most
}
