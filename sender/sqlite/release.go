package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// The token guards the row. What was the first attempt of a schedule is so
	// again.
	releaseDelivery = `UPDATE surehook_deliveries SET due = ?1, claimed_at = 0, number = number - 1, tries = tries - 1,
			first_at = CASE WHEN tries = 1 THEN 0 ELSE first_at END
		WHERE event = ?2 AND subscription = ?3 AND number = ?4 AND claimed_at <> 0`
	lowerHead = `UPDATE surehook_heads SET next_due = ?1 WHERE subscription = ?2 AND (next_due IS NULL OR next_due > ?1)
		AND (SELECT state FROM surehook_subscriptions WHERE no = ?2) = 0`
	lowerTurnOf = `UPDATE surehook_turns SET next_due = ?1 FROM surehook_heads h
		WHERE h.subscription = ?2 AND surehook_turns.lane = h.lane AND surehook_turns.subscriber = h.subscriber
			AND (surehook_turns.next_due IS NULL OR surehook_turns.next_due > ?1) AND h.next_due <= ?1`

	selectDeleted = `SELECT no FROM surehook_subscriptions WHERE state = 1 ORDER BY no LIMIT 1`
	selectOfGone  = `SELECT event, number, tries, first_at, claimed_at, single FROM surehook_deliveries
		WHERE subscription = ? AND (claimed_at = 0 OR due <= ?) LIMIT ?`
	markSwept = `UPDATE surehook_subscriptions SET state = 2 WHERE no = ?1
		AND NOT EXISTS (SELECT 1 FROM surehook_deliveries WHERE subscription = ?1)`
)

// Release implements sender.DispatchStore.
func (s *Store) Release(ctx context.Context, rs []sender.Release) error {
	return s.write(ctx, func(w *work) error {
		now := s.now()
		for _, r := range rs {
			due := max(now, micros(r.Due))
			res, err := w.exec(releaseDelivery, due, r.Key.Event, r.Key.Subscription, r.Token)
			if err != nil {
				return fail("releasing", err)
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				if err != nil {
					return fail("releasing", err)
				}
				continue
			}
			if err := w.wake(r.Key.Subscription, due); err != nil {
				return fail("releasing", err)
			}
		}
		return nil
	})
}

// wake makes a subscription, and its subscriber, due no later than at.
func (w *work) wake(subscription, at int64) error {
	if err := w.execs(lowerHead, at, subscription); err != nil {
		return err
	}
	return w.execs(lowerTurnOf, at, subscription)
}

// Sweep implements sender.DispatchStore.
func (s *Store) Sweep(ctx context.Context, limit int) (swept int, err error) {
	var gone int64
	if gone, err = s.deleted(ctx); err != nil || gone == never {
		return 0, fail("looking for deleted subscriptions", err)
	}
	err = s.write(ctx, func(w *work) error {
		swept, err = s.sweep(w, gone, limit)
		return fail("sweeping", err)
	})
	return swept, err
}

// deleted is a deleted subscription that has not been swept, or never.
func (s *Store) deleted(ctx context.Context) (no int64, err error) {
	err = s.read(ctx, func(w *work) error {
		no, err = w.least(selectDeleted)
		return err
	})
	return no, err
}

func (s *Store) sweep(w *work, subscription int64, limit int) (int, error) {
	k, err := s.registry(w)
	if err != nil {
		return 0, err
	}
	sub, err := k.subscription(w, subscription)
	if err != nil {
		return 0, err
	}
	b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
	b.Decide = func(_ sender.Live, h sender.Health, _ sender.Result, _ time.Time) sender.Decision {
		return sender.Decision{Status: sender.StatusCancelled, Health: h}
	}
	if err := b.heads.load([]int64{subscription}); err != nil {
		return 0, err
	}
	var all []live
	err = w.each(func(rows *sql.Rows) (bool, error) {
		l := live{subscription: subscription}
		err := rows.Scan(&l.event, &l.number, &l.tries, &l.firstAt, &l.claimedAt, &l.single)
		all = append(all, l)
		return true, err
	}, selectOfGone, subscription, b.now, limit)
	if err != nil {
		return 0, err
	}
	for i := range all {
		l := &all[i]
		switch {
		case l.claimedAt != 0:
			_, err = b.settle(b.heads.by[subscription], sub, l, lost(l, 0))
		case l.single:
			b.over = append(b.over, l.event, l.subscription)
		default:
			err = b.end(l, sender.StatusCancelled)
		}
		if err != nil {
			return 0, err
		}
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return len(all), w.execs(markSwept, subscription)
}
