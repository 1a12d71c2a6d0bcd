package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// pruneLook is how many rows a batch looks at, in limits, if most of them must stay.
	pruneLook = 4
	// pruneBytes bounds the bodies of one batch: the pages of a large one are freed one
	// by one.
	pruneBytes = 4 << 20

	selectOldEnds  = `SELECT no FROM surehook_ended WHERE status = ? AND ended_at < ? ORDER BY ended_at LIMIT ? + 0`
	deleteOldEnds  = `DELETE FROM surehook_ended WHERE no IN (SELECT value FROM json_each(?)) RETURNING event, subscription`
	deleteAttempts = `DELETE FROM surehook_attempts WHERE (event, subscription) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`

	selectOldRecords = `SELECT a.event, a.subscription, max(a.started_at) < ?4 AND NOT (` + keepsRecord + `)
		FROM surehook_attempts a WHERE (a.event, a.subscription) > (?1, ?2) AND a.event <= ?3
		GROUP BY a.event, a.subscription ORDER BY a.event, a.subscription LIMIT ?5 + 0`
	// keepsRecord is true of a delivery that has not ended, or not as delivered. One with
	// attempts is delivered, or it is in one of these tables.
	keepsRecord = `EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = a.subscription AND x.event = a.event)
		OR EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = a.subscription AND x.event = a.event)
		OR EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = a.subscription AND x.event = a.event)
		OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.subscription = a.subscription AND x.event = a.event)`
	// selectStillOld returns those of [event, subscription] that have not been sent again
	// since they were found.
	selectStillOld = `SELECT a.event, a.subscription FROM json_each(?1) j
		CROSS JOIN surehook_attempts a ON a.event = j.value ->> 0 AND a.subscription = j.value ->> 1
		GROUP BY a.event, a.subscription HAVING max(a.started_at) < ?2 AND NOT (` + keepsRecord + `)`

	selectOldEvents = `SELECT e.seq, length(e.body), e.created_at >= ?3 OR EXISTS (SELECT 1 FROM surehook_attempts x WHERE x.event = e.seq)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'dead_lettered' AND x.event = e.seq)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'cancelled' AND x.event = e.seq)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'superseded' AND x.event = e.seq)
		FROM surehook_events e WHERE e.seq > ?1 AND e.seq <= ?2 ORDER BY e.seq LIMIT ?4 + 0`
	deleteKeys   = `DELETE FROM surehook_keys WHERE event IN (SELECT value FROM json_each(?))`
	deleteEvents = `DELETE FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`
	raisePruned  = `UPDATE surehook_feed_pruned SET event = max(event, ?)`

	selectOldNotices = `SELECT no FROM surehook_notices WHERE acknowledged_at > 0 AND acknowledged_at < ? ORDER BY acknowledged_at LIMIT ? + 0`
	deleteNotices    = `DELETE FROM surehook_notices WHERE no IN (SELECT value FROM json_each(?))`

	selectOldReplays = `SELECT no FROM surehook_replays WHERE ended_at > 0 AND ended_at < ? ORDER BY ended_at LIMIT ? + 0`
	deleteReplays    = `DELETE FROM surehook_replays WHERE no IN (SELECT value FROM json_each(?))`

	selectOldRollups = `SELECT minute, shard FROM surehook_rollups WHERE minute < ? ORDER BY minute, shard LIMIT ? + 0`
	selectOldHours   = `SELECT subscription, hour, shard FROM surehook_subscription_rollups WHERE hour < ? ORDER BY hour LIMIT ? + 0`
	deleteHour       = `DELETE FROM surehook_subscription_rollups WHERE subscription = ? AND hour = ? AND shard = ?`
	// An hour goes after its minutes, so with some of them, or with those of a later one.
	deleteHourRollups = `DELETE FROM surehook_hour_rollups WHERE hour IN (SELECT hour FROM surehook_hour_rollups WHERE hour <= ? ORDER BY hour LIMIT ? + 0)`
	deleteRollups     = `DELETE FROM surehook_rollups WHERE (minute, shard) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
)

// pruning is one call of Prune at work.
type pruning struct {
	s   *Store
	ctx context.Context
	*rules.PrunePass
}

// Prune implements dispatch.Store. It looks for old rows in a transaction that only
// reads, and takes the write lock to remove them. The pages that it frees are used again;
// the file does not shrink.
func (s *Store) Prune(ctx context.Context, params dispatch.PruneParams) (dispatch.Pruned, error) {
	batch, err := rules.NewPrunePass(params)
	if err != nil {
		return dispatch.Pruned{}, err
	}
	p := &pruning{s: s, ctx: ctx, PrunePass: batch}
	at := func(step func(before int64) (bool, error)) rules.PruneStep {
		return func(before time.Time) (bool, error) { return step(micros(before)) }
	}
	out, err := p.Run(rules.PruneSteps{
		DeadLetters: at(p.deadLetters), Cancelled: at(p.cancelled), Delivered: at(p.delivered),
		Events: at(p.events), Notices: at(p.notices), Replays: at(p.replays), Rollups: at(p.rollups), SubscriptionRollups: at(p.hours), Subscriptions: at(p.subscriptions), Objects: at(p.objects),
	})
	return out, fail("pruning", err)
}

// found reads numbers, and reports whether there may be more of them.
func (p *pruning) found(query string, args ...any) (all []int64, more bool, err error) {
	err = p.s.read(p.ctx, func(w *work) (err error) {
		all, err = w.numbers(query, append(args, p.Limit)...)
		return err
	})
	return all, len(all) == p.Limit, err
}

func (p *pruning) deadLetters(before int64) (bool, error) {
	return p.ends(sender.StatusDeadLettered, before, &p.Out.DeadLetters)
}

func (p *pruning) cancelled(before int64) (more bool, err error) {
	if more, err = p.ends(sender.StatusCancelled, before, &p.Out.Deliveries); more || err != nil || p.Out.Deliveries > 0 {
		return true, err
	}
	return p.ends(sender.StatusSuperseded, before, &p.Out.Deliveries)
}

func (p *pruning) ends(status sender.Status, before int64, removed *int) (more bool, err error) {
	all, more, err := p.found(selectOldEnds, string(status), before)
	if err != nil || len(all) == 0 {
		return false, err
	}
	var gone []dispatch.DeliveryKey
	err = p.s.write(p.ctx, func(w *work) (err error) {
		// A delivery that was redelivered since has no row any more.
		if gone, err = w.keys(deleteOldEnds, list(all)); err != nil {
			return err
		}
		if err := w.execs(deleteAttempts, keyList(gone)); err != nil || status != sender.StatusDeadLettered {
			return err
		}
		return w.fewerDead(gone)
	})
	*removed += len(gone)
	return more, err
}

// fewerDead counts the dead letters that subscriptions have lost.
func (w *work) fewerDead(gone []dispatch.DeliveryKey) error {
	var subscriptions []int64
	for _, k := range gone {
		subscriptions = append(subscriptions, k.Subscription)
	}
	slices.Sort(subscriptions)
	hs := newHeads(w)
	if err := hs.load(slices.Compact(subscriptions)); err != nil {
		return err
	}
	for _, k := range gone {
		hs.by[k.Subscription].dead--
	}
	return hs.store()
}

// until returns the last expanded event that was published before a time.
func (w *work) until(before int64) (event int64, err error) {
	var expanded, seen int64
	if err := w.row(selectExpanded).Scan(&expanded, &seen); err != nil {
		return 0, err
	}
	event, err = w.lastBefore(before)
	return min(event, expanded), err
}

func (p *pruning) delivered(before int64) (more bool, err error) {
	var old []dispatch.DeliveryKey
	err = p.s.read(p.ctx, func(w *work) error {
		until, err := w.until(before) // a delivery that ended before a time was published before it
		if err != nil {
			return err
		}
		looked := 0
		err = w.each(func(rows *sql.Rows) (bool, error) {
			var goes bool
			err := rows.Scan(&p.At.Event, &p.At.Subscription, &goes)
			if goes {
				old = append(old, dispatch.DeliveryKey{Event: p.At.Event, Subscription: p.At.Subscription})
			}
			looked++
			more = looked == pruneLook*p.Limit || len(old) == p.Limit
			return !more, err
		}, selectOldRecords, p.At.Event, p.At.Subscription, until, before, pruneLook*p.Limit)
		return err
	})
	if err != nil || len(old) == 0 {
		return more, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		still, err := w.keys(selectStillOld, keyList(old), before)
		if err != nil {
			return err
		}
		p.Out.Deliveries += len(still)
		return w.execs(deleteAttempts, keyList(still))
	})
	return more, err
}

func (p *pruning) events(before int64) (more bool, err error) {
	var old []int64
	err = p.s.read(p.ctx, func(w *work) error {
		until, err := w.until(before)
		if err != nil {
			return err
		}
		looked, bytes := 0, 0
		err = w.each(func(rows *sql.Rows) (bool, error) {
			var size int
			var keeps bool
			err := rows.Scan(&p.At.Event, &size, &keeps)
			if !keeps {
				old = append(old, p.At.Event)
				bytes += size
			}
			looked++
			more = looked == pruneLook*p.Limit || len(old) == p.Limit || bytes >= pruneBytes
			return !more, err
		}, selectOldEvents, p.At.Event, until, before, pruneLook*p.Limit)
		if err == nil {
			old, err = w.withoutLive(old)
		}
		return err
	})
	if err != nil || len(old) == 0 {
		return more, err
	}
	return more, p.removeEvents(old)
}

// hasLive is the condition of the index surehook_heads_live, in the same words.
const hasLive = `h.pending + h.waiting + h.leased + h.behind > 0`

// selectLiveEvents finds the events of a range that have live deliveries.
var selectLiveEvents = []string{
	`SELECT x.event FROM surehook_heads h CROSS JOIN surehook_pending x
		WHERE ` + hasLive + ` AND h.pending > 0 AND x.subscription = h.subscription AND x.event >= ?1 AND x.event <= ?2`,
	`SELECT x.event FROM surehook_heads h CROSS JOIN surehook_waiting x
		WHERE ` + hasLive + ` AND h.waiting > 0 AND x.subscription = h.subscription AND x.event >= ?1 AND x.event <= ?2`,
	`SELECT x.event FROM surehook_heads h CROSS JOIN surehook_lines x
		WHERE ` + hasLive + ` AND h.behind > 0 AND x.subscription = h.subscription AND x.event >= ?1 AND x.event <= ?2 AND x.place IN (1, 2)`,
	`SELECT event FROM surehook_leases WHERE event >= ?1 AND event <= ?2`,
}

// withoutLive returns those of the events, given in their order, that have no live
// delivery.
func (w *work) withoutLive(events []int64) ([]int64, error) {
	if len(events) == 0 {
		return nil, nil
	}
	live := map[int64]bool{}
	for _, query := range selectLiveEvents {
		found, err := w.numbers(query, events[0], events[len(events)-1])
		if err != nil {
			return nil, err
		}
		for _, event := range found {
			live[event] = true
		}
	}
	return slices.DeleteFunc(events, func(event int64) bool { return live[event] }), nil
}

// removeEvents removes events without checking them again: an event that has neither a
// record nor a live delivery cannot be sent again.
func (p *pruning) removeEvents(old []int64) error {
	return p.s.write(p.ctx, func(w *work) error {
		if err := w.execs(deleteKeys, list(old)); err != nil {
			return err
		}
		if err := w.execs(raisePruned, slices.Max(old)); err != nil {
			return err
		}
		if !p.Objects.IsZero() {
			if err := p.markForgettable(w, old); err != nil {
				return err
			}
		}
		if err := w.execs(removeKept, list(old)); err != nil {
			return err
		}
		n, err := w.count(deleteEvents, list(old))
		p.Out.Events += n
		return err
	})
}

func (p *pruning) notices(before int64) (more bool, err error) {
	return p.numbered(selectOldNotices, deleteNotices, before, &p.Out.Notices)
}

func (p *pruning) replays(before int64) (more bool, err error) {
	return p.numbered(selectOldReplays, deleteReplays, before, &p.Out.Replays)
}

// numbered removes rows by their numbers. Those that are old cannot become anything else.
func (p *pruning) numbered(selectOld, deleteThem string, before int64, removed *int) (more bool, err error) {
	all, more, err := p.found(selectOld, before)
	if err != nil || len(all) == 0 {
		return false, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		n, err := w.count(deleteThem, list(all))
		*removed += n
		return err
	})
	return more, err
}

func (p *pruning) rollups(before int64) (more bool, err error) {
	var all []dispatch.DeliveryKey // of (minute, shard)
	err = p.s.read(p.ctx, func(w *work) (err error) {
		all, err = w.keys(selectOldRollups, before, p.Limit)
		return err
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		n, err := w.count(deleteRollups, keyList(all))
		p.Out.Rollups += n
		if err != nil {
			return err
		}
		return w.execs(deleteHourRollups, before-time.Hour.Microseconds(), p.Limit)
	})
	return len(all) == p.Limit, err
}

// hours removes figures of subscriptions.
func (p *pruning) hours(before int64) (more bool, err error) {
	type row struct{ subscription, hour, shard int64 }
	var all []row
	err = p.s.read(p.ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var r row
			err := rows.Scan(&r.subscription, &r.hour, &r.shard)
			all = append(all, r)
			return true, err
		}, selectOldHours, before, p.Limit)
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		for _, r := range all {
			n, err := w.count(deleteHour, r.subscription, r.hour, r.shard)
			if err != nil {
				return err
			}
			p.Out.SubscriptionRollups += n
		}
		return nil
	})
	return len(all) == p.Limit, err
}

// keys reads pairs of event and subscription.
func (w *work) keys(query string, args ...any) (all []dispatch.DeliveryKey, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var k dispatch.DeliveryKey
		err := rows.Scan(&k.Event, &k.Subscription)
		all = append(all, k)
		return true, err
	}, query, args...)
	return all, err
}

// count runs a statement and returns how many rows it has changed.
func (w *work) count(query string, args ...any) (int, error) {
	res, err := w.exec(query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// keyList returns a JSON array of [event, subscription].
func keyList(keys []dispatch.DeliveryKey) string {
	b := []byte{'['}
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d]", k.Event, k.Subscription)
	}
	return string(append(b, ']'))
}
