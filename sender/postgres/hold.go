package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	holdSubscription = `UPDATE surehook_subscriptions SET status = $2, held_at = {now}, disabled_reason = $3, version = version + 1 WHERE no = $1 RETURNING ` + durable

	// skipping finds the last position that a resume skips. $2: the resume takes nothing
	// that was held; $3: it takes what was published since. feed.newest never falls, so
	// halving finds the last position before a time.
	skipping = `halves AS (
			SELECT 0::bigint AS low, position + 1 AS high FROM surehook_feed_head WHERE NOT $2::boolean AND $3::timestamptz IS NOT NULL
			UNION ALL
			SELECT coalesce(f.position, h.low), CASE WHEN f.position IS NULL THEN h.low + (h.high - h.low) / 2 ELSE h.high END
			FROM halves h LEFT JOIN LATERAL (
				SELECT * FROM (SELECT position, newest FROM surehook_feed WHERE position >= h.low + (h.high - h.low) / 2 AND position < h.high
					ORDER BY position LIMIT 1) x WHERE x.newest < $3) f ON true
			WHERE h.high - h.low > 1),
		leaves AS MATERIALIZED (SELECT coalesce(CASE WHEN $2 THEN (SELECT position FROM surehook_feed_head)
			ELSE (SELECT low FROM halves WHERE high - low <= 1) END, 0) AS position)`

	// resumeSubscription reads the positions and the outbox on one snapshot: an event that
	// was committed before is in either, whatever an expander does meanwhile. Those of the
	// outbox are mostly few, or lie side by side.
	resumeSubscription = `WITH RECURSIVE ` + skipping + `,
		s AS (UPDATE surehook_subscriptions SET status = 'active', held_at = NULL, disabled_reason = '', version = version + 1,
				epoch = epoch + 1, resumed_at = {now}, resumed_from = leaves.position,
				left_to = CASE WHEN $2 OR $3::timestamptz IS NOT NULL THEN greatest(left_to, leaves.position) ELSE left_to END,
				recovered = CASE WHEN status = 'disabled' THEN epoch + 1 ELSE recovered END
			FROM leaves WHERE no = $1 RETURNING no, epoch),
		l AS (INSERT INTO surehook_left (subscription, epoch, event, seen, unexpanded)
			SELECT s.no, s.epoch, leaves.position, (SELECT position FROM surehook_feed_head),
				coalesce((SELECT range_agg(int8range(event, event, '[]')) FROM surehook_outbox WHERE $2 OR created_at < $3), '{}')
			FROM s, leaves WHERE $2 OR $3::timestamptz IS NOT NULL)` + wakeThem

	// getsEvent says in SQL what match.gets says, and isSkipped what expansion.skip finds, about
	// an event ev and a subscription s with a pattern p.
	getsEvent = `NOT ev.redacted AND p.subscription > ev.after AND (ev.about <> p.subscription OR p.pattern = split_part(ev.patterns, ' ', 1))
		AND (p.since_seq IS NULL OR ev.seq > p.since_seq OR ev.xid <> p.since_xid AND NOT pg_visible_in_snapshot(ev.xid, p.since_snapshot))`
	isSkipped = `EXISTS (SELECT 1 FROM surehook_left l WHERE l.subscription = s.no AND ev.event <@ l.unexpanded)`

	// isTaken is the condition that no resume before has skipped a row x of a subscription s.
	// A skipped delivery that is not swept has an event up to left_to, and so has one that was
	// sent again since.
	isTaken = `(x.event > s.left_to OR NOT EXISTS (SELECT 1 FROM surehook_left k WHERE k.subscription = s.no AND k.epoch > x.epoch AND k.event >= x.event))`

	// oldestHeld returns when the oldest event before a time was published that a resume
	// would send, expanded or not. For expanded events the deliveries are there or were
	// skipped. For the others it applies the rules of an expansion.
	oldestHeld = `WITH RECURSIVE ` + skipping + `
		SELECT least(
			(SELECT e.created_at FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = (
				SELECT min(event) FROM surehook_pending WHERE subscription = s.no AND event > greatest(s.left_to, leaves.position))),
			(SELECT e.created_at FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = (
				SELECT min(event) FROM surehook_waiting x WHERE subscription = s.no AND event > leaves.position AND ` + isTaken + `)),
			(SELECT e.created_at FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = (
				SELECT min(event) FROM surehook_leases x WHERE subscription = s.no AND event > leaves.position AND ` + isTaken + ` AND NOT redacted)),
			(SELECT e.created_at FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = (
				SELECT event FROM surehook_lines x WHERE subscription = s.no AND event > leaves.position AND place < 3 AND ` + isTaken + `
					AND NOT EXISTS (SELECT 1 FROM surehook_leases l WHERE l.subscription = x.subscription AND l.event = x.event AND l.redacted OFFSET 0) ORDER BY event LIMIT 1)),
			(SELECT min(ev.created_at) FROM (
					SELECT x.*, length(e.body) = 0 AS redacted FROM surehook_outbox x JOIN surehook_events e ON e.no = x.event
					WHERE e.created_at < $4 AND ($3 IS NULL OR e.created_at >= $3)) ev
				WHERE NOT (` + isSkipped + `) AND (
					ev.subscription = s.no AND NOT ev.redacted AND s.no > ev.after
					OR ev.subscription = 0 AND (ev.subscriber IN (0, s.subscriber) OR o.id = $5) AND EXISTS (
						SELECT 1 FROM surehook_patterns p WHERE p.subscription = s.no AND p.pattern = ANY (string_to_array(ev.patterns, ' ')) AND ` + getsEvent + `))))
		FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber, leaves WHERE s.no = $1`
)

// HoldSubscriptionTx implements sender.Store.
func (s *Store[Tx]) HoldSubscriptionTx(ctx context.Context, tx Tx, id string, status sender.SubscriptionStatus, reason string) error {
	w, no, present, err := s.lockSubscription(ctx, tx, id)
	if err != nil {
		return err
	}
	if hold, err := rules.Hold(id, present, status); !hold {
		return err
	}
	if status == sender.SubscriptionPaused {
		reason = ""
	}
	return fail("holding a subscription", w.execs(holdSubscription, no, string(status), reason))
}

// ResumeSubscriptionTx implements sender.Store. It writes a row of the
// subscription, and one of surehook_left. The deliveries are looked at when they are
// claimed, and when they are swept.
func (s *Store[Tx]) ResumeSubscriptionTx(ctx context.Context, tx Tx, id string, r sender.Resume) error {
	w, no, present, err := s.lockSubscription(ctx, tx, id)
	if err != nil {
		return err
	}
	if resume, err := rules.Resume(id, present); !resume {
		return err
	}
	if err := w.withinRetention(no, r); err != nil {
		return err
	}
	if err := w.execs(resumeSubscription, no, r.None, timestampFrom(r.Since)); err != nil {
		return fail("resuming a subscription", err)
	}
	s.published.Add(1) // so that InTx wakes the dispatcher after the commit
	return nil
}

func (w *work) withinRetention(no int64, r sender.Resume) error {
	if r.None || r.NotBefore.IsZero() {
		return nil
	}
	var oldest timestamp
	err := w.row(oldestHeld, no, r.None, timestampFrom(r.Since), timestampFrom(r.NotBefore), sender.Operator).Scan(&oldest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fail("looking for the oldest held delivery", err)
	}
	return rules.Within(oldest.time(), r.NotBefore)
}
