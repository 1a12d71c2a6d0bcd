package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

const (
	addCounts    = `UPDATE surehook_counts SET live = live + ?, held = held + ?, dead = dead + ?`
	selectStatus = `SELECT status FROM surehook_subscriptions WHERE no = ?`

	selectCounts = `SELECT live, held, dead, active, paused, disabled, closing, notices,
		max(0, (SELECT coalesce(max(seq), 0) FROM surehook_events) - (SELECT seen FROM surehook_expanded)) + (SELECT count(*) FROM surehook_unexpanded) FROM surehook_counts`

	// selectLanes adds up the heads that have live work and are not held.
	selectLanes = `SELECT lane, sum(pending + waiting + leased + behind) FROM surehook_heads INDEXED BY surehook_heads_live
		WHERE pending + waiting + leased + behind > 0 AND open = 1 GROUP BY lane`

	// selectOldestDue looks at the 300 subscriptions of a lane that have waited longest
	// for a turn. The time that it finds may lie ahead. A pending delivery that is older
	// than a resume is due since the resume.
	selectOldestDue = `SELECT min(due) FROM (SELECT min(
			coalesce((SELECT max(p.due, h.resumed_at) FROM surehook_pending p
				WHERE p.subscription = h.subscription AND p.event > h.left_to ORDER BY p.event LIMIT 1), 9223372036854775807),
			coalesce((SELECT min(w.due) FROM surehook_waiting w WHERE w.subscription = h.subscription AND w.epoch = h.epoch AND w.rank = 0), 9223372036854775807),
			coalesce((SELECT min(w.due) FROM surehook_waiting w WHERE w.subscription = h.subscription AND w.epoch = h.epoch AND w.rank = 1), 9223372036854775807),
			CASE WHEN h.resumed_to IS NOT NULL AND EXISTS (SELECT 1 FROM surehook_waiting w
				WHERE w.subscription = h.subscription AND w.epoch < h.epoch AND w.event > max(h.resumed_to, h.left_to)) THEN h.resumed_at ELSE 9223372036854775807 END,
			CASE WHEN h.leased > 0 AND h.leases_end <= ?2
				THEN coalesce((SELECT min(l.until) FROM surehook_leases l WHERE l.subscription = h.subscription AND NOT EXISTS (SELECT 1
					FROM surehook_left f WHERE f.subscription = l.subscription AND f.epoch > l.epoch AND f.event >= l.event)
					AND NOT EXISTS (SELECT 1 FROM surehook_events e WHERE e.seq = l.event AND length(e.body) = 0)), 9223372036854775807)
				ELSE 9223372036854775807 END) AS due
		FROM (SELECT h.* FROM surehook_turns t JOIN surehook_heads h ON h.lane = t.lane AND h.subscriber = t.subscriber
			WHERE t.lane = ?1 AND t.next_due <= ?2 AND h.next_due <= ?2 ORDER BY t.next_due LIMIT 300) h)`
)

// Counts implements history.Store.
func (s *Store) Counts(ctx context.Context) (c history.Counts, err error) {
	err = s.read(ctx, func(w *work) (err error) {
		c, err = w.counts(s.now())
		return err
	})
	return c, fail("counting", err)
}

func (w *work) counts(now int64) (c history.Counts, err error) {
	c.At = timeOf(now)
	statuses := [...]sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing}
	var n [len(statuses)]int64
	err = w.row(selectCounts).Scan(&c.Live, &c.Held, &c.DeadLettered, &n[0], &n[1], &n[2], &n[3], &c.Notices, &c.Unexpanded)
	if err != nil {
		return c, err
	}
	c.Subscriptions = map[sender.SubscriptionStatus]int64{}
	for i, status := range statuses {
		if n[i] != 0 {
			c.Subscriptions[status] = n[i]
		}
	}
	for lane := range sender.Lane(sender.Lanes) {
		due, err := w.least(selectOldestDue, lane, now)
		if err != nil {
			return c, err
		}
		if due <= now {
			c.Due(lane, timeOf(due))
		}
	}
	return c, w.each(func(rows *sql.Rows) (bool, error) {
		var lane, live int64
		err := rows.Scan(&lane, &live)
		if known := laneOf(lane); err == nil && known != noLane {
			c.Lanes[known].Live = live
		}
		return true, err
	}, selectLanes)
}

// change is how the counts change when heads are stored.
type change struct{ live, held, dead int64 }

// add counts the difference between a head and its stored state. The subscription's
// status is read only if the head is not open: then it can be held or deleted.
func (c *change) add(w *work, h, was *head) error {
	c.dead += h.dead - was.dead
	by := h.live() - was.live()
	switch {
	case by == 0:
	case h.open:
		c.live += by
	default:
		var status sender.SubscriptionStatus
		err := w.row(selectStatus, h.subscription).Scan(&status)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if status == sender.SubscriptionPaused || status == sender.SubscriptionDisabled {
			c.held += by
		}
	}
	return nil
}

func (c *change) store(w *work) error {
	if *c == (change{}) {
		return nil
	}
	return w.execs(addCounts, c.live, c.held, c.dead)
}
