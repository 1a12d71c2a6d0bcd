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
	releaseLease = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, single)
		SELECT subscription, event, ?1, number - 1, tries - 1, CASE WHEN tries = 1 THEN 0 ELSE first_at END, single
		FROM surehook_leases WHERE subscription = ?2 AND event = ?3 AND number = ?4`
	deleteLease = `DELETE FROM surehook_leases WHERE subscription = ? AND event = ?`
	lowerHead   = `UPDATE surehook_heads SET next_due = ?1 WHERE subscription = ?2 AND (next_due IS NULL OR next_due > ?1)
		AND (SELECT state FROM surehook_subscriptions WHERE no = ?2) = 0`
	lowerTurnOf = `UPDATE surehook_turns SET next_due = ?1 FROM surehook_heads h
		WHERE h.subscription = ?2 AND surehook_turns.lane = h.lane AND surehook_turns.subscriber = h.subscriber
			AND (surehook_turns.next_due IS NULL OR surehook_turns.next_due > ?1) AND h.next_due <= ?1`

	selectDeleted = `SELECT no FROM surehook_subscriptions WHERE state = 1 ORDER BY no LIMIT 100`
	selectGone    = `SELECT event, 0, 0, 0, 0 FROM surehook_pending WHERE subscription = ?1
		UNION ALL SELECT event, number, tries, first_at, single FROM surehook_waiting WHERE subscription = ?1 LIMIT ?2 + 0`
	selectGoneLeases = `SELECT event, number, tries, first_at, single, claimed_at FROM surehook_leases
		WHERE subscription = ? AND until <= ? LIMIT ? + 0`
	deletePendingOne = `DELETE FROM surehook_pending WHERE subscription = ? AND event = ?`
	markSwept        = `UPDATE surehook_subscriptions SET state = 2 WHERE no = ?1
		AND NOT EXISTS (SELECT 1 FROM surehook_pending WHERE subscription = ?1)
		AND NOT EXISTS (SELECT 1 FROM surehook_waiting WHERE subscription = ?1)
		AND NOT EXISTS (SELECT 1 FROM surehook_leases WHERE subscription = ?1)`
)

// Release implements sender.DispatchStore.
func (s *Store) Release(ctx context.Context, rs []sender.Release) error {
	return s.write(ctx, func(w *work) error {
		now := s.now()
		for _, r := range rs {
			due := max(now, micros(r.Due))
			res, err := w.exec(releaseLease, due, r.Key.Subscription, r.Key.Event, r.Token)
			if err != nil {
				return fail("releasing", err)
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 {
				if err != nil {
					return fail("releasing", err)
				}
				continue
			}
			if err := w.execs(deleteLease, r.Key.Subscription, r.Key.Event); err != nil {
				return fail("releasing", err)
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
	var gone []int64
	err = s.read(ctx, func(w *work) error {
		gone, err = w.numbers(selectDeleted)
		return err
	})
	if err != nil || len(gone) == 0 {
		return 0, fail("looking for deleted subscriptions", err)
	}
	err = s.write(ctx, func(w *work) error {
		swept = 0
		for _, subscription := range gone {
			n, err := s.sweep(w, subscription, limit-swept)
			if err != nil {
				return fail("sweeping", err)
			}
			if swept += n; swept >= limit {
				break
			}
		}
		return nil
	})
	return swept, err
}

// sweep ends what is live of a deleted subscription, but for attempts in flight.
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
	gone, err := w.lives(subscription, func(rows *sql.Rows, l *live) error {
		return rows.Scan(&l.event, &l.number, &l.tries, &l.firstAt, &l.single)
	}, selectGone, subscription, limit)
	if err != nil {
		return 0, err
	}
	lost, err := w.lives(subscription, func(rows *sql.Rows, l *live) error {
		return rows.Scan(&l.event, &l.number, &l.tries, &l.firstAt, &l.single, &l.claimedAt)
	}, selectGoneLeases, subscription, b.now, limit-len(gone))
	if err != nil {
		return 0, err
	}
	for i := range gone {
		if err := b.cancel(&gone[i]); err != nil {
			return 0, err
		}
	}
	for i := range lost {
		if err := b.execs(deleteLease, subscription, lost[i].event); err != nil {
			return 0, err
		}
		if _, err := b.settle(b.heads.by[subscription], sub, &lost[i], lostAttempt(&lost[i], 0)); err != nil {
			return 0, err
		}
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return len(gone) + len(lost), w.execs(markSwept, subscription)
}

// cancel ends a delivery that is not in flight. One that was delivered, and was
// to be sent once more, stays delivered.
func (b *batch) cancel(l *live) error {
	for _, query := range []string{deletePendingOne, deleteWaiting} {
		if err := b.execs(query, l.subscription, l.event); err != nil {
			return err
		}
	}
	if l.single {
		return nil
	}
	return b.end(l, sender.StatusCancelled)
}

func (w *work) lives(subscription int64, scan func(*sql.Rows, *live) error, query string, args ...any) (all []live, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		all = append(all, live{subscription: subscription})
		return true, scan(rows, &all[len(all)-1])
	}, query, args...)
	return all, err
}
