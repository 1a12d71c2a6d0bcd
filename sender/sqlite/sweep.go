package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectEnding finds subscriptions that have something to be swept, or that are
	// at their end.
	selectEnding = `SELECT s.no FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no
		WHERE s.status IN ('closing', 'deleted') AND CASE s.status
			WHEN 'deleted' THEN h.pending + h.waiting + h.behind > 0 OR h.leased = 0 OR h.leases_end <= ?1
			ELSE h.pending + h.waiting + h.leased + h.behind = 0 AND s.until <= (SELECT event FROM surehook_expanded) END
		ORDER BY s.no LIMIT 100`
	// selectSkippedOf finds subscriptions with a resume that skipped something, of which some
	// is live and not in flight, or of which nothing can come any more. Others may stay for
	// long, and must not be among the hundred. The + keeps an index out that leads to all that
	// a resume has taken.
	selectSkippedOf = `SELECT DISTINCT s.subscription FROM surehook_left s CROSS JOIN surehook_heads h ON h.subscription = s.subscription
		WHERE h.pending > 0 AND EXISTS (SELECT 1 FROM surehook_pending x WHERE x.subscription = s.subscription AND x.event <= s.event)
			OR h.waiting > 0 AND EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = s.subscription AND x.event <= s.event AND +x.epoch < s.epoch)
			OR h.behind > 0 AND EXISTS (SELECT 1 FROM surehook_lines l WHERE l.subscription = s.subscription AND l.event <= s.event
				AND (l.place = 1 OR l.place = 2 AND l.epoch < s.epoch) AND ` + isBehind + `)
			OR h.leased > 0 AND EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = s.subscription AND x.event <= s.event AND x.epoch < s.epoch AND x.until <= ?1)
			OR s.event <= (SELECT event FROM surehook_expanded)
				AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = s.subscription AND x.epoch < s.epoch)
		ORDER BY s.subscription LIMIT 100`

	selectGonePending = `SELECT event, 0, 0, 0 FROM surehook_pending WHERE subscription = ?1 AND event <= ?2 AND ?3 IS NOT NULL ORDER BY event LIMIT ?4 + 0`
	selectGoneWaiting = `SELECT event, number, single, epoch FROM surehook_waiting w WHERE subscription = ?1 AND event <= ?2
		AND (?3 OR EXISTS (SELECT 1 FROM surehook_left l WHERE l.subscription = ?1 AND l.epoch > w.epoch AND l.event >= w.event))
		ORDER BY event LIMIT ?4 + 0`
	selectGoneLeases = `SELECT event, token, number, tries, first_at, stood, single, epoch, claimed_at,
			(SELECT notice FROM surehook_events WHERE seq = x.event) IS 1 FROM surehook_leases x
		WHERE subscription = ?1 AND until <= ?2
			AND (?3 OR EXISTS (SELECT 1 FROM surehook_left l WHERE l.subscription = ?1 AND l.epoch > x.epoch AND l.event >= x.event)) LIMIT ?4 + 0`
	selectGoneBehind = `SELECT event, number, single, epoch FROM surehook_lines l WHERE subscription = ?1 AND event <= ?2 AND place IN (1, 2)
		AND (?3 OR place = 1 OR EXISTS (SELECT 1 FROM surehook_left s WHERE s.subscription = ?1 AND s.epoch > l.epoch AND s.event >= l.event))
		AND ` + isBehind + ` ORDER BY event LIMIT ?4 + 0`
	deletePendingOf = `DELETE FROM surehook_pending WHERE subscription = ? AND event IN (SELECT value FROM json_each(?))`
	deleteWaitingOf = `DELETE FROM surehook_waiting WHERE subscription = ? AND event IN (SELECT value FROM json_each(?))`
	insertEnds      = `INSERT INTO surehook_ended (subscription, event, status, class, ended_at)
		SELECT ?1, j.value, ?4, coalesce((SELECT class FROM surehook_attempts WHERE event = j.value AND subscription = ?1 ORDER BY number DESC LIMIT 1), ''), ?3
		FROM json_each(?2) j`

	// clearSkipped forgets a resume's row once no delivery of an earlier epoch can come
	// any more.
	clearSkipped = `DELETE FROM surehook_left WHERE subscription = ?1 AND event <= (SELECT event FROM surehook_expanded)
		AND NOT EXISTS (SELECT 1 FROM surehook_leases l WHERE l.subscription = ?1 AND l.epoch < surehook_left.epoch)`
	lowerSkipped = `UPDATE surehook_heads SET left_to = coalesce((SELECT max(event) FROM surehook_left WHERE subscription = ?1), 0) WHERE subscription = ?1`

	// markSwept also erases the settings, with what is sealed in them: nothing is posted to a
	// swept subscription any more, since nothing is redelivered or replayed to a deleted one.
	markSwept     = `UPDATE surehook_subscriptions SET status = 'swept', swept_at = ?, settings = '{}' WHERE no = ?`
	deletePattern = `DELETE FROM surehook_patterns WHERE subscription = ?`

	selectForgotten = `SELECT no FROM surehook_subscribers o WHERE deleted = 1
		AND NOT EXISTS (SELECT 1 FROM surehook_subscriptions s WHERE s.subscriber = o.no AND s.status <> 'swept') LIMIT 100`
)

// everything is beyond all events.
const everything = never

// Sweep implements dispatch.Store. If it cannot write the counts since the last time, it sweeps
// all the same.
func (s *Store) Sweep(ctx context.Context, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	counted := s.storeHours(ctx, p.Limit == 0)
	if p.Limit == 0 {
		return out, counted
	}
	counted = errors.Join(counted, s.mergeHours(ctx))
	out, err = s.sweep(ctx, p)
	return out, errors.Join(counted, err)
}

func (s *Store) sweep(ctx context.Context, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	var ending, skipped, forgotten []int64
	var freeable, halted []dispatch.DeliveryKey
	err = s.read(ctx, func(w *work) (err error) {
		if ending, err = w.numbers(selectEnding, s.now()); err != nil {
			return err
		}
		if skipped, err = w.numbers(selectSkippedOf, s.now()); err != nil {
			return err
		}
		if freeable, err = s.freeable(w); err != nil {
			return err
		}
		if halted, err = w.halted(); err != nil {
			return err
		}
		forgotten, err = w.numbers(selectForgotten)
		return err
	})
	if err != nil || len(ending)+len(skipped)+len(forgotten)+len(freeable)+len(halted) == 0 {
		return out, fail("looking for what is to be swept", err)
	}
	err = s.write(ctx, func(w *work) error {
		b := batch{work: w, Batch: dispatch.Batch{Announce: p.Announce}, store: s, now: s.now(), heads: newHeads(w), superseding: rules.SupersedingInSweep(p.Limit)}
		err := b.sweep(ending, skipped, p.Cancels(len(freeable)+len(halted) > 0))
		if err == nil {
			freeable, err = b.expire(freeable, p.NotBefore)
		}
		var freed int64
		if err == nil {
			freed, err = b.free(freeable)
		}
		if err == nil {
			err = b.goOnWithHalted(halted)
		}
		out = dispatch.Swept{Ended: b.superseding.Ended(), Freed: int(freed), Notices: b.out.Notices}
		return fail("sweeping", err)
	})
	if err != nil {
		return dispatch.Swept{}, err
	}
	return out, nil
}

// sweep ends up to limit deliveries that read as cancelled.
func (b *batch) sweep(ending, skipped []int64, limit int) (err error) {
	if b.registry, err = b.store.registry(b.work); err != nil {
		return err
	}
	for _, part := range []struct {
		of    []int64
		sweep func(no int64, limit int) error
	}{{ending, b.sweepEnding}, {skipped, b.sweepSkipped}} {
		for _, no := range part.of {
			if err := part.sweep(no, max(0, limit-b.superseding.Ended())); err != nil {
				return err
			}
		}
	}
	return b.forget()
}

// forget destroys the secrets of deleted subscribers whose subscriptions have all ended.
func (w *work) forget() error {
	forgotten, err := w.numbers(selectForgotten)
	if err != nil {
		return err
	}
	for _, no := range forgotten {
		if err := w.execs(deleteSecrets, no); err != nil {
			return err
		}
		if err := w.execs(`UPDATE surehook_subscribers SET deleted = 2, keyring_version = keyring_version + 1 WHERE no = ?`, no); err != nil {
			return err
		}
		if err := w.changed(); err != nil {
			return err
		}
	}
	return nil
}

// sweepEnding ends the live deliveries of a deleted subscription, except those in flight.
// If none is live, it ends the subscription itself.
func (b *batch) sweepEnding(no int64, limit int) error {
	h, err := b.heads.any(no)
	if err != nil || h.missing {
		return err
	}
	sub, err := b.registry.subscription(b.work, no)
	if err != nil {
		return err
	}
	if sub.gone() {
		if _, err = b.cancelGone(h, sub, everything, true, limit); err != nil {
			return err
		}
	}
	if h.live() == 0 {
		h.lined = 0 // nothing but dead letters
		if err := b.execs(deleteLines, no); err != nil {
			return err
		}
		if err := b.execs(markSwept, b.now, no); err != nil {
			return err
		}
		if err := b.execs(`UPDATE surehook_heads SET open = 0 WHERE subscription = ?`, no); err != nil {
			return err
		}
		h.open = false
		if err := b.execs(deletePattern, no); err != nil {
			return err
		}
		if err := b.changed(); err != nil {
			return err
		}
	}
	return b.storeHeads()
}

// cancelGone ends deliveries that read as cancelled, except those in flight.
func (b *batch) cancelGone(h *head, sub *subscription, upTo int64, all bool, limit int) (swept int, err error) {
	gone, err := b.gone(h, upTo, all, limit)
	if err != nil {
		return 0, err
	}
	if err := b.cancel(h, gone); err != nil {
		return 0, err
	}
	lost, err := b.goneLeases(h, all, limit-len(gone))
	if err != nil {
		return 0, err
	}
	for i := range lost {
		if err := b.execs(deleteLease, h.subscription, lost[i].event); err != nil {
			return 0, err
		}
		h.leased--
		r := rules.Lost(lost[i].forDecision(), lost[i].token, timeOf(lost[i].claimedAt), time.Time{}, 0)
		if _, err := b.settle(h, sub, &lost[i], &r); err != nil {
			return 0, err
		}
	}
	swept = len(gone) + len(lost)
	b.superseding.Add(swept)
	return swept, b.flush()
}

func (b *batch) sweepSkipped(no int64, limit int) error {
	h, err := b.heads.any(no)
	if err != nil || h.missing {
		return err
	}
	sub, err := b.registry.subscription(b.work, no)
	if err != nil {
		return err
	}
	swept, err := b.cancelGone(h, sub, h.skippedTo, false, limit)
	if err != nil {
		return err
	}
	if err := b.storeHeads(); err != nil || swept >= limit {
		return err
	}
	if err := b.execs(clearSkipped, no); err != nil {
		return err
	}
	return b.execs(lowerSkipped, no)
}

// goneLeases finds cancelled deliveries whose last attempts were lost.
func (b *batch) goneLeases(h *head, all bool, limit int) ([]live, error) {
	if h.leased == 0 || limit <= 0 {
		return nil, nil
	}
	return b.lives(h.subscription, func(rows *sql.Rows, l *live) error {
		return rows.Scan(&l.event, &l.token, &l.number, &l.tries, &l.firstAt, &l.stood, &l.single, &l.epoch, &l.claimedAt, &l.notice)
	}, selectGoneLeases, h.subscription, b.now, all, limit)
}

// gone finds cancelled deliveries that are not in flight: among all, or among those up to
// an event that resumes have skipped. Those that are behind come first, so that they need
// not come out before they end.
func (b *batch) gone(h *head, upTo int64, all bool, limit int) (gone []live, err error) {
	for _, from := range []struct {
		query  string
		rows   int64
		behind bool
	}{{selectGoneBehind, h.behind, true}, {selectGonePending, h.pending, false}, {selectGoneWaiting, h.waiting, false}} {
		if from.rows == 0 || len(gone) >= limit {
			continue
		}
		some, err := b.lives(h.subscription, func(rows *sql.Rows, l *live) error {
			l.behind = from.behind
			return rows.Scan(&l.event, &l.number, &l.single, &l.epoch)
		}, from.query, h.subscription, upTo, all, limit-len(gone))
		if err != nil {
			return nil, err
		}
		gone = append(gone, some...)
	}
	return gone, nil
}

// cancel ends deliveries of a subscription that are not in flight.
func (b *batch) cancel(h *head, gone []live) error { return b.endAll(h, gone, rules.Cancelled) }

// endAll ends deliveries of a subscription that are not in flight, each as a rule says.
func (b *batch) endAll(h *head, gone []live, as func(single bool) sender.Status) error {
	if len(gone) == 0 {
		return nil
	}
	var all, ended []int64
	for i := range gone {
		l := &gone[i]
		all = append(all, l.event)
		if l.behind {
			h.behind--
		}
		if as(l.single) != sender.StatusDelivered {
			ended = append(ended, l.event)
		} else if err := b.delivered(l); err != nil {
			return err
		}
	}
	for _, from := range []struct {
		query string
		rows  *int64
	}{{deletePendingOf, &h.pending}, {deleteWaitingOf, &h.waiting}} {
		if *from.rows == 0 {
			continue
		}
		n, err := b.count(from.query, h.subscription, list(all))
		if err != nil {
			return err
		}
		*from.rows -= int64(n)
	}
	if h.lined > 0 {
		n, err := b.left(h, leaveLineOf, h.subscription, list(all))
		if err != nil {
			return err
		}
		h.lined -= n
	}
	if as(false) == sender.StatusDeadLettered {
		h.dead += int64(len(ended))
	}
	return b.execs(insertEnds, h.subscription, list(ended), b.now, string(as(false)))
}

func (w *work) lives(subscription int64, scan func(*sql.Rows, *live) error, query string, args ...any) (all []live, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		all = append(all, live{subscription: subscription})
		return true, scan(rows, &all[len(all)-1])
	}, query, args...)
	return all, err
}
