package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// LeasedUnder implements dispatch.Store.
func (s *Store) LeasedUnder(ctx context.Context, tokens []int64, limit int) (found []dispatch.Release, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		for _, sub := range s.subscriptions {
			for d := range sub.leased {
				if slices.Contains(tokens, d.live.token) {
					found = append(found, dispatch.Release{Key: d.key(), Token: d.live.token})
				}
			}
		}
		slices.SortFunc(found, func(a, b dispatch.Release) int {
			return cmp.Or(cmp.Compare(a.Key.Subscription, b.Key.Subscription), cmp.Compare(a.Key.Event, b.Key.Event))
		})
		found = found[:min(limit, len(found))]
		return nil
	})
	return found, err
}

// Release implements dispatch.Store.
func (s *Store) Release(ctx context.Context, rs []dispatch.Release) error {
	return s.inTx(ctx, func(tx *Tx) error {
		now := s.now()
		for _, r := range rs {
			d := s.deliveries[r.Key]
			if d == nil || !d.holds(r.Token) {
				continue
			}
			row := *d.live
			if row.number == 1 {
				set(tx, &d.kept, nil)
			}
			var back dispatch.Live
			back, row.due = rules.TakeBack(d.forDecision(), row.leased, d.event.info.CreatedAt, row.resumed, r.Due, now)
			row.take(&back)
			row.returned = r.Due.IsZero() && row.number == 0
			row.leased = time.Time{}
			switch line := d.line(); {
			case d.cancelled():
				tx.end(d, rules.Cancelled(row.single))
			case line.Overtaken(d.sub.Settings.Order, d.event.no):
				tx.end(d, rules.Superseded(row.single))
			default:
				tx.goOn(d, &row, line)
			}
			tx.wake = true
		}
		return nil
	})
}
