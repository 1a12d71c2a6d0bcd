package memory

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
)

// countHour changes the figures of a subscription in the hour of a time: it replaces them
// with a changed copy, so that a roll-back has the old ones.
func (tx *Tx) countHour(now time.Time, subscription int64, change func(r *history.SubscriptionRollup)) {
	k := hourly.Key{Subscription: subscription, Hour: now.Truncate(time.Hour)}
	r := history.SubscriptionRollup{Hour: k.Hour}
	if old := tx.store.hours[k]; old != nil {
		r = old.Clone()
	}
	change(&r)
	setKey(tx, tx.store.hours, k, &r)
}

// SubscriptionRollups implements history.Store. It looks at the figures of every
// subscription.
func (s *Store) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) (all []history.SubscriptionRollup, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		for _, id := range ids {
			sub := s.subscription[id]
			if sub == nil {
				continue
			}
			start := len(all)
			for k, r := range s.hours {
				if k.Subscription == sub.no && !k.Hour.Before(from) && k.Hour.Before(to) {
					shown := r.Clone()
					shown.Subscription = id
					all = append(all, shown)
				}
			}
			byHour(all[start:])
		}
		return nil
	})
	return all, err
}

func byHour(all []history.SubscriptionRollup) {
	slices.SortFunc(all, func(a, b history.SubscriptionRollup) int { return a.Hour.Compare(b.Hour) })
}
