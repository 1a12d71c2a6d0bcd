package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/sender"
)

const (
	selectSomeDeleted = `SELECT EXISTS (SELECT 1 FROM surehook_subscriptions WHERE state = 1)`
	selectDeleted     = `SELECT no FROM surehook_subscriptions WHERE state = 1 ORDER BY no LIMIT ?`
	selectWaitingOf   = `SELECT event, single FROM surehook_waiting WHERE subscription = ? ORDER BY event LIMIT ?`
)

// How many deleted subscriptions a Sweep looks at, besides those that it must leave
// to attempts in flight.
const sweptTogether = 500

// Sweep implements sender.DispatchStore. Attempts in flight are left to their
// results, or to the end of their leases.
func (s *Store) Sweep(ctx context.Context, limit int) (ended int, err error) {
	var some bool
	if err := s.db.QueryRowContext(ctx, selectSomeDeleted).Scan(&some); err != nil {
		return 0, fail("looking for deleted subscriptions", err)
	}
	if !some {
		return 0, nil
	}
	err = s.write(ctx, func(w *work) error {
		b, err := s.newBatch(w, &sender.Batch{})
		if err == nil {
			ended, err = b.sweep(limit)
		}
		return fail("sweeping", err)
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

func (b *batch) sweep(limit int) (ended int, err error) {
	flying := map[int64]int{}
	for i := range b.leases.all {
		le := &b.leases.all[i]
		if le.end > b.now {
			flying[le.key.Subscription]++
		}
	}
	lost, err := b.lostOfDeleted()
	if err != nil {
		return 0, err
	}
	var deleted []int64
	err = b.each(func(rows *sql.Rows) (bool, error) {
		var no int64
		err := rows.Scan(&no)
		deleted = append(deleted, no)
		return true, err
	}, selectDeleted, sweptTogether+len(flying))
	if err != nil {
		return 0, err
	}
	for _, no := range deleted {
		n, err := b.sweepOf(no, lost[no], limit-ended)
		if err != nil {
			return 0, err
		}
		if ended += n; ended == limit {
			break
		}
		if flying[no] == 0 {
			if err := b.execs(`UPDATE surehook_subscriptions SET state = ? WHERE no = ?`, stateSwept, no); err != nil {
				return 0, err
			}
		}
	}
	return ended, b.store()
}

// lostOfDeleted returns the leases that have ended of deleted subscriptions.
func (b *batch) lostOfDeleted() (map[int64][]sender.DeliveryKey, error) {
	lost := map[int64][]sender.DeliveryKey{}
	for i := range b.leases.all {
		le := &b.leases.all[i]
		if le.end > b.now {
			continue
		}
		sub, err := b.known.subscription(b.work, le.key.Subscription)
		if err != nil {
			return nil, err
		}
		if sub.state != stateActive {
			lost[le.key.Subscription] = append(lost[le.key.Subscription], le.key)
		}
	}
	return lost, nil
}

// sweepOf ends up to limit live deliveries of a deleted subscription. Fewer mean
// that none are left, but for those in flight.
func (b *batch) sweepOf(no int64, lost []sender.DeliveryKey, limit int) (ended int, err error) {
	h, err := b.headOf(no)
	if err != nil {
		return 0, err
	}
	for _, key := range lost {
		if ended == limit {
			return ended, nil
		}
		le := b.leases.find(key)
		r := interrupted(le, 0)
		if _, err := b.settle(le, &r, false); err != nil {
			return 0, err
		}
		ended++
	}
	var gone []int64
	var cancelled []sender.DeliveryKey
	err = b.each(func(rows *sql.Rows) (bool, error) {
		var event int64
		var single bool
		err := rows.Scan(&event, &single)
		gone = append(gone, event)
		if !single { // a single one was delivered before
			cancelled = append(cancelled, sender.DeliveryKey{Event: event, Subscription: no})
		}
		return true, err
	}, selectWaitingOf, no, limit-ended)
	if err == nil && len(gone) > 0 {
		err = b.execs(deleteWaiting, no, list(gone))
	}
	for i := 0; err == nil && i < len(cancelled); i++ {
		err = b.end(cancelled[i], sender.StatusCancelled)
	}
	if err != nil {
		return 0, err
	}
	if ended += len(gone); ended == limit {
		return ended, nil
	}
	h.waitingDue = never

	c := claim{batch: b}
	q := newQueue(h, 0, nil)
	if err := c.fillFresh(q, limit-ended); err != nil {
		return 0, err
	}
	for _, row := range q.fresh {
		if err := b.end(row.key, sender.StatusCancelled); err != nil {
			return 0, err
		}
		h.claimed = row.key.Event
		ended++
	}
	return ended, nil
}
