package memory

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// patterns says since when a subscription asks for the patterns of its filter.
type patterns struct {
	tx    int64            // the transaction that changed the filter last
	since map[string]int64 // for each pattern that was there before that: the transaction that asked for it first
}

// UpdateSubscriptionTx implements sender.Store.
func (s *Store) UpdateSubscriptionTx(ctx context.Context, tx *Tx, n sender.Subscription) error {
	return s.in(ctx, tx, func() error {
		sub, err := s.find(n.ID)
		if err != nil {
			return err
		}
		now := patterns{tx: tx.no, since: map[string]int64{}}
		for _, pattern := range n.EventTypes {
			if slices.Contains(sub.EventTypes, pattern) {
				now.since[pattern] = sub.asksSince(pattern)
			}
		}
		set(tx, &sub.patterns, now)
		set(tx, &sub.URL, n.URL)
		set(tx, &sub.EventTypes, slices.Clone(n.EventTypes))
		set(tx, &sub.Filter, n.Filter)
		set(tx, &sub.Description, n.Description)
		set(tx, &sub.Settings, cloneSettings(n.Settings))
		tx.again(sub, time.Time{}) // the new rate may allow more
		tx.wake = true
		return nil
	})
}

// asksSince returns the transaction since which a subscription asks for a pattern of its
// filter.
func (sub *subscription) asksSince(pattern string) int64 {
	if since, ok := sub.patterns.since[pattern]; ok {
		return since
	}
	return max(sub.patterns.tx, sub.tx)
}

// gets tells whether a subscription gets an event.
func (sub *subscription) gets(e *event) bool {
	if sub.deleted || e.tx < sub.tx || sub.Status == sender.SubscriptionClosing && e.no > sub.last {
		return false
	}
	if to := e.to; to.subscription == "" && to.subscriber != "" && sub.Subscriber != to.subscriber && sub.Subscriber != sender.Operator {
		return false // as Matches says: most are of others, and to copy a subscription for it takes far longer
	}
	s := sub.Subscription
	if e.tx < sub.patterns.tx {
		s.EventTypes = nil
		for _, pattern := range sub.EventTypes {
			if sub.asksSince(pattern) <= e.tx {
				s.EventTypes = append(s.EventTypes, pattern)
			}
		}
	}
	return sender.Matches(s, e.info.Type, e.to.subscriber, e.to.subscription, e.about)
}
