package memory

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Expand implements sender.DispatchStore. It compares each event with each
// subscription that is older than it.
func (s *Store) Expand(ctx context.Context, p sender.ExpandParams) (x sender.Expanded, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		now := s.now()
		tx.turnRollup(now)
		x = tx.expand(p, now)
		if x.Events+x.Deliveries > 0 {
			var done sender.Rollup
			done.AddExpanded(x)
			tx.tally(&done)
		}
		return nil
	})
	if err != nil {
		return sender.Expanded{}, err
	}
	return x, nil
}

func (tx *Tx) expand(p sender.ExpandParams, now time.Time) (x sender.Expanded) {
	s := tx.store
	for s.expanding < len(s.events) {
		e := s.events[s.expanding]
		if x.Events == p.Events {
			x.More = true
			return x
		}
		for _, sub := range s.subscriptions[s.expandingAt:] {
			if e.redacted || sub.tx > e.tx {
				break // it and all that follow are younger than the event, or nobody gets it
			}
			if sub.gets(e) {
				if x.Deliveries == p.Deliveries {
					x.More = true
					return x
				}
				if d := tx.deliver(e, sub); sub.leaves(e) {
					tx.end(d, sender.StatusCancelled)
				} else {
					tx.setLive(d, &live{due: now})
				}
				x.Deliveries++
			}
			set(tx, &s.expandingAt, s.expandingAt+1)
		}
		set(tx, &s.expanding, s.expanding+1)
		set(tx, &s.expandingAt, 0)
		x.Events++
	}
	return x
}

// deliver makes the delivery of an event to a subscription. The caller says whether
// it is live.
func (tx *Tx) deliver(e *event, sub *subscription) *delivery {
	d := &delivery{event: e, sub: sub}
	setKey(tx, tx.store.deliveries, d.key(), d)
	set(tx, &e.deliveries, append(e.deliveries, d))
	set(tx, &sub.deliveries, append(sub.deliveries, d))
	return d
}
