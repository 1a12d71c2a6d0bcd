package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	setStatus = `UPDATE surehook_subscriptions SET status = ?, disabled_at = ?, disabled_reason = ? WHERE no = ?`
	closeHead = `UPDATE surehook_heads SET open = 0, next_due = NULL WHERE subscription = ?`

	// unexpandedBefore reads the events that a subscription may still get: they are not
	// expanded for it, and were committed since it asks for its first type.
	unexpandedBefore = `SELECT e.created_at, e.type, coalesce(o.id, ''), coalesce(s.id, ''),
			coalesce((SELECT id FROM surehook_subscriptions WHERE no = e.about), '') FROM surehook_events e
		LEFT JOIN surehook_subscribers o ON o.no = e.subscriber LEFT JOIN surehook_subscriptions s ON s.no = e.subscription
		WHERE e.seq > (SELECT event FROM surehook_expanded) AND (e.seq > (SELECT seen FROM surehook_expanded)
				OR EXISTS (SELECT 1 FROM surehook_unexpanded u WHERE u.event = e.seq AND u.after < ?1))
			AND e.seq > (SELECT coalesce(min(since), 0) FROM surehook_patterns WHERE subscription = ?1)
			AND e.seq > ?2 AND e.created_at < ?3 AND length(e.body) > 0 ORDER BY e.seq`

	// isTaken is the condition that no resume before has skipped a row x. A skipped delivery
	// that is not swept has an event up to ?3, and so has one that was sent again since.
	isTaken    = `(x.event > ?3 OR NOT EXISTS (SELECT 1 FROM surehook_left k WHERE k.subscription = ?1 AND k.epoch > x.epoch AND k.event >= x.event))`
	isRedacted = `EXISTS (SELECT 1 FROM surehook_events v WHERE v.seq = x.event AND length(v.body) = 0)`

	// oldestHeld takes the events up to which this resume skips all, and earlier ones did.
	oldestHeld = `SELECT e.created_at FROM surehook_events e WHERE e.seq = min(
		coalesce((SELECT min(event) FROM surehook_pending WHERE subscription = ?1 AND event > max(?2, ?3)), 9223372036854775807),
		coalesce((SELECT min(event) FROM surehook_waiting x WHERE subscription = ?1 AND event > ?2 AND ` + isTaken + `), 9223372036854775807),
		coalesce((SELECT min(event) FROM surehook_leases x WHERE subscription = ?1 AND event > ?2 AND ` + isTaken + ` AND NOT ` + isRedacted + `), 9223372036854775807),
		coalesce((SELECT event FROM surehook_lines x WHERE subscription = ?1 AND event > ?2 AND place IN (1, 2) AND ` + isTaken + `
			AND NOT EXISTS (SELECT 1 FROM surehook_leases l WHERE l.subscription = ?1 AND l.event = x.event AND ` + isRedacted + `) ORDER BY event LIMIT 1), 9223372036854775807))`
)

// disable disables an active subscription while a result is recorded.
func (b *batch) disable(h *head, sub *subscription, reason string) error {
	if err := b.execs(setStatus, string(sender.SubscriptionDisabled), b.now, reason, sub.SubscriptionNo); err != nil {
		return err
	}
	if err := b.execs(closeHead, sub.SubscriptionNo); err != nil {
		return err
	}
	h.open, sub.status = false, string(sender.SubscriptionDisabled)
	return b.changed()
}

// HoldSubscriptionTx implements sender.Store.
func (s *Store) HoldSubscriptionTx(ctx context.Context, tx *sql.Tx, id string, status sender.SubscriptionStatus, reason string) error {
	w, no, n, err := s.subscriptionIn(ctx, tx, id)
	if err != nil {
		return err
	}
	if hold, err := rules.Hold(id, n.Status, status); !hold {
		return err
	}
	if status == sender.SubscriptionPaused {
		reason = ""
	}
	err = w.execs(setStatus, string(status), s.now(), reason, no)
	if err == nil {
		err = w.execs(closeHead, no)
	}
	if err == nil {
		err = w.changed()
	}
	return fail("holding a subscription", err)
}

// ResumeSubscriptionTx implements sender.Store. It changes the head, and adds a
// row to surehook_left. The deliveries are looked at when they are claimed, and when they
// are swept.
func (s *Store) ResumeSubscriptionTx(ctx context.Context, tx *sql.Tx, id string, r sender.Resume) error {
	w, no, n, err := s.subscriptionIn(ctx, tx, id)
	if err != nil {
		return err
	}
	if resume, err := rules.Resume(id, n.Status); !resume {
		return err
	}
	const doing = "resuming a subscription"
	skippedTo, err := w.skippedUpTo(r)
	if err != nil {
		return fail(doing, err)
	}
	hs := newHeads(w)
	h, err := hs.one(no)
	if err != nil {
		return fail(doing, err)
	}
	if err := w.withinRetention(h, n, skippedTo, r); err != nil {
		return err
	}
	now := s.now()
	if n.Status == sender.SubscriptionDisabled {
		h.health = rules.Recovered(h.health)
	}
	if err := w.resume(h, skippedTo, now); err != nil {
		return fail(doing, err)
	}
	if err := w.execs(setStatus, statusActive, 0, "", no); err != nil {
		return fail(doing, err)
	}
	if err := hs.store(); err != nil {
		return fail(doing, err)
	}
	s.published.Store(true) // so that the dispatcher wakes once the transaction is committed
	return fail(doing, w.changed())
}

// skippedUpTo returns the last event whose deliveries a resume skips.
func (w *work) skippedUpTo(r sender.Resume) (event int64, err error) {
	switch {
	case r.None:
		err = w.row(lastEvent).Scan(&event)
	case !r.Since.IsZero():
		event, err = w.lastBefore(microsFrom(r.Since))
	}
	return event, err
}

// lastBefore finds the last event before a time by halving; 0 if there is none. Events are in
// the order of their times, unless the clock was set back. It looks only where there are
// events: below them, the oldest would answer in their place. That one may have a time in the
// future, and stay because of it when all others have gone.
func (w *work) lastBefore(at int64) (int64, error) {
	var first, high int64
	if err := w.row(`SELECT coalesce(min(seq), 0) FROM surehook_events`).Scan(&first); err != nil {
		return 0, err
	}
	if err := w.row(`SELECT coalesce(max(seq), 0) + 1 FROM surehook_events`).Scan(&high); err != nil {
		return 0, err
	}
	low := max(first-1, 0) // before at, or before all events
	for high-low > 1 {
		middle := low + (high-low)/2
		var seq, created int64
		err := w.row(`SELECT seq, created_at FROM surehook_events WHERE seq >= ? ORDER BY seq LIMIT 1`, middle).Scan(&seq, &created)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		if err == nil && seq < high && created < at {
			low = seq
		} else {
			high = middle
		}
	}
	if low < first {
		return 0, nil
	}
	return low, nil
}

func (w *work) withinRetention(h *head, n sender.Subscription, skippedTo int64, r sender.Resume) error {
	if r.NotBefore.IsZero() {
		return nil
	}
	const doing = "looking for the oldest held delivery"
	oldest := int64(never)
	err := w.row(oldestHeld, h.subscription, skippedTo, h.skippedTo).Scan(&oldest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fail(doing, err)
	}
	unexpanded, err := w.oldestUnexpanded(h.subscription, n, max(skippedTo, h.skippedTo), microsFrom(r.NotBefore))
	if err != nil {
		return fail(doing, err)
	}
	return rules.Within(timeOf(min(oldest, unexpanded)), r.NotBefore)
}

// oldestUnexpanded returns when the first event was published that is not expanded yet,
// that a subscription will get, and that is older than a time; never if there is none.
func (w *work) oldestUnexpanded(no int64, n sender.Subscription, after, before int64) (oldest int64, err error) {
	oldest = never
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var at int64
		var eventType, subscriber, subscription, about string
		err := rows.Scan(&at, &eventType, &subscriber, &subscription, &about)
		if err == nil && sender.Matches(n, eventType, subscriber, subscription, about) {
			oldest = at
		}
		return oldest == never, err
	}, unexpandedBefore, no, after, before)
	return oldest, err
}

// resume opens a head under a new epoch.
func (w *work) resume(h *head, skippedTo, now int64) error {
	epoch := h.epoch + 1
	if skippedTo > 0 {
		if err := w.execs(`INSERT INTO surehook_left (subscription, epoch, event) VALUES (?, ?, ?)`, h.subscription, epoch, skippedTo); err != nil {
			return err
		}
	}
	err := w.execs(`UPDATE surehook_heads SET open = 1, epoch = ?, resumed_at = ?, left_to = ? WHERE subscription = ?`,
		epoch, now, max(skippedTo, h.skippedTo), h.subscription)
	if err != nil {
		return err
	}
	h.open, h.epoch, h.resumedAt, h.skippedTo = true, epoch, now, max(skippedTo, h.skippedTo)
	if h.waiting > 0 {
		h.resumedTo = skippedTo
	}
	if h.live() > 0 {
		h.lower(now)
	}
	return nil
}
