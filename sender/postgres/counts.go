package postgres

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// unexpandedExact is the number of unexpanded events up to which they are counted one by
// one.
const unexpandedExact = 10_000

const (
	// selectCounts adds up the heads. If one row held the sums, all who change deliveries
	// would wait for each other.
	selectCounts = `SELECT s.status, h.lane, count(*), coalesce(sum(h.pending + h.waiting + h.leased + h.behind), 0)::bigint, coalesce(sum(h.dead), 0)::bigint
		FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription GROUP BY s.status, h.lane`
	// selectBacklog adds up only those with something live, for who asks each minute.
	selectBacklog = `WITH h AS MATERIALIZED (SELECT h.subscription, h.lane, h.pending + h.waiting + h.leased + h.behind AS live FROM surehook_heads h WHERE ` + hasLive + `)
		SELECT h.lane, sum(h.live)::bigint FROM h CROSS JOIN LATERAL (
			SELECT 1 FROM surehook_subscriptions s WHERE s.no = h.subscription AND ` + opened + ` OFFSET 0) s GROUP BY h.lane`
	selectBesides = `SELECT (SELECT count(*) FROM (SELECT 1 FROM surehook_notices WHERE acknowledged_at IS NULL ORDER BY no LIMIT $2) x),
			(SELECT count(*) FROM (SELECT 1 FROM surehook_outbox ORDER BY seq LIMIT $1 + 1) x),
			coalesce((SELECT max(seq) - min(seq) + 1 FROM surehook_outbox), 0)`

	// selectOldestDue looks at the subscriptions of each lane that have waited longest for
	// a turn, and at those that callers have changed and no dispatcher has seen since: of
	// these the heads do not tell whether something is due, for one may be resumed, or have
	// a higher limit. The deliveries that it finds may be due later. Deliveries that a
	// resume made due are due since the resume.
	selectOldestDue = `WITH c AS MATERIALIZED (
			SELECT c.subscription FROM generate_series(0, $2::int - 1) AS l(lane) CROSS JOIN LATERAL (
				SELECT h.subscription FROM surehook_turns t JOIN surehook_heads h ON h.lane = t.lane AND h.subscriber = t.subscriber
				WHERE t.lane = l.lane AND t.next_due < 'infinity' AND t.next_due <= $1 AND h.next_due < 'infinity' AND h.next_due <= $1
				ORDER BY t.next_due LIMIT 300) c
			UNION (SELECT subscription FROM surehook_wakes LIMIT 300))
		SELECT h.lane, min(least(
			(SELECT greatest(p.due, s.resumed_at) FROM surehook_pending p
				WHERE p.subscription = h.subscription AND p.event > greatest(s.left_to, h.claimed_to) ORDER BY p.event LIMIT 1),
			(SELECT w.due FROM surehook_waiting w WHERE w.subscription = h.subscription AND w.epoch = s.epoch AND w.rank = 0 AND w.due >= h.waiting_from
				ORDER BY w.due LIMIT 1),
			(SELECT w.due FROM surehook_waiting w WHERE w.subscription = h.subscription AND w.epoch = s.epoch AND w.rank = 1 AND w.due >= h.waiting_from
				ORDER BY w.due LIMIT 1),
			CASE WHEN (h.resumed_to IS NOT NULL OR h.epoch < s.epoch AND h.waiting > 0) AND EXISTS (SELECT 1 FROM surehook_waiting w
					WHERE w.subscription = h.subscription AND w.epoch < s.epoch AND w.event > greatest(CASE WHEN h.epoch < s.epoch THEN s.resumed_from ELSE h.resumed_to END, s.left_to))
				THEN s.resumed_at END,
			CASE WHEN h.leased > 0 AND (h.leases_end IS NULL OR h.leases_end <= $1)
				THEN (SELECT min(l.until) FROM surehook_leases l WHERE l.subscription = h.subscription AND NOT l.redacted AND NOT EXISTS (SELECT 1
					FROM surehook_left f WHERE f.subscription = l.subscription AND f.epoch > l.epoch AND f.event >= l.event)) END))
		FROM c CROSS JOIN LATERAL (
				SELECT subscription, lane, claimed_to, waiting, waiting_from, leased, leases_end, epoch, resumed_to FROM surehook_heads WHERE subscription = c.subscription OFFSET 0) h
			CROSS JOIN LATERAL (
				SELECT resumed_at, resumed_from, left_to, epoch FROM surehook_subscriptions s WHERE s.no = h.subscription AND ` + opened + ` OFFSET 0) s
		GROUP BY h.lane`
)

// backlog counts what a rollup has of how much there is to do. Its cost grows with the
// subscriptions that have something live.
func (c *core) backlog(ctx context.Context) (counts history.Counts, err error) {
	err = c.dispatching().read(ctx, func(w *work) error {
		return w.send(
			w.query(selectBacklog).rows(func(r rows) error {
				var stored int16
				var live int64
				err := r.Scan(&stored, &live)
				counts.Live += live
				if lane := laneOf(stored); lane != noLane {
					counts.Lanes[lane].Live += live
				}
				return err
			}),
			w.oldestDue(&counts),
		)
	})
	return counts, fail("counting", err)
}

// Counts implements history.Store. Its cost grows with the subscriptions. If more
// than 10 000 events are not expanded, it estimates them by their numbers, and so counts
// events whose publishing was rolled back, if there are any.
func (c *core) Counts(ctx context.Context) (counts history.Counts, err error) {
	err = c.read(ctx, func(w *work) (err error) {
		counts, err = w.counts()
		return err
	})
	return counts, fail("counting", err)
}

func (w *work) counts() (c history.Counts, err error) {
	c.At, c.Subscriptions = w.now.time(), map[sender.SubscriptionStatus]int64{}
	err = w.send(
		w.query(selectCounts).rows(func(r rows) error {
			var status sender.SubscriptionStatus
			var subscriptions, live, dead int64
			var stored int16
			err := r.Scan(&status, &stored, &subscriptions, &live, &dead)
			c.DeadLettered += dead
			switch status {
			case sender.SubscriptionActive, sender.SubscriptionClosing:
				c.Live += live
				if lane := laneOf(stored); lane != noLane {
					c.Lanes[lane].Live += live
				}
			case sender.SubscriptionPaused, sender.SubscriptionDisabled:
				c.Held += live
			default:
				return err
			}
			c.Subscriptions[status] += subscriptions
			return err
		}),
		w.query(selectBesides, unexpandedExact, history.MaxCountedNotices).rows(func(r rows) error {
			var span int64
			err := r.Scan(&c.Notices, &c.Unexpanded, &span)
			if c.Unexpanded > unexpandedExact {
				c.Unexpanded = span
			}
			return err
		}),
		w.oldestDue(&c),
	)
	return c, err
}

func (w *work) oldestDue(c *history.Counts) query {
	return w.query(selectOldestDue, w.now, sender.Lanes).rows(func(r rows) error {
		var stored int16
		var due timestamp
		err := r.Scan(&stored, &due)
		if lane := laneOf(stored); err == nil && due <= w.now && due != none {
			c.Due(lane, due.time())
		}
		return err
	})
}
