package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// Of what must stay, a batch looks at so many times its limit.
	pruneLook = 4
	// The pages of a large body are freed one by one.
	pruneBytes = 4 << 20

	selectOldEnds  = `SELECT no FROM surehook_ended WHERE status = ? AND ended_at < ? ORDER BY ended_at LIMIT ? + 0`
	deleteOldEnds  = `DELETE FROM surehook_ended WHERE no IN (SELECT value FROM json_each(?)) RETURNING event, subscription`
	deleteAttempts = `DELETE FROM surehook_attempts WHERE (event, subscription) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`

	selectOldRecords = `SELECT a.event, a.subscription, max(a.started_at) < ?4 AND NOT (` + keepsRecord + `)
		FROM surehook_attempts a WHERE (a.event, a.subscription) > (?1, ?2) AND a.event <= ?3
		GROUP BY a.event, a.subscription ORDER BY a.event, a.subscription LIMIT ?5 + 0`
	// A delivery with attempts is delivered, or it is in one of these.
	keepsRecord = `EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = a.subscription AND x.event = a.event)
		OR EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = a.subscription AND x.event = a.event)
		OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.subscription = a.subscription AND x.event = a.event)`
	// selectStillOld says which of [event, subscription] have not been sent again since
	// they were found.
	selectStillOld = `SELECT a.event, a.subscription FROM json_each(?1) j
		CROSS JOIN surehook_attempts a ON a.event = j.value ->> 0 AND a.subscription = j.value ->> 1
		GROUP BY a.event, a.subscription HAVING max(a.started_at) < ?2 AND NOT (` + keepsRecord + `)`

	selectOldEvents = `SELECT e.seq, length(e.body), e.created_at >= ?3 OR EXISTS (SELECT 1 FROM surehook_attempts x WHERE x.event = e.seq)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'dead_lettered' AND x.event = e.seq)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'cancelled' AND x.event = e.seq)
		FROM surehook_events e WHERE e.seq > ?1 AND e.seq <= ?2 ORDER BY e.seq LIMIT ?4 + 0`
	deleteKeys   = `DELETE FROM surehook_keys WHERE event IN (SELECT value FROM json_each(?))`
	deleteEvents = `DELETE FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`
	raisePruned  = `UPDATE surehook_feed_pruned SET event = max(event, ?)`

	selectOldNotices = `SELECT no FROM surehook_notices WHERE acknowledged_at > 0 AND acknowledged_at < ? ORDER BY acknowledged_at LIMIT ? + 0`
	deleteNotices    = `DELETE FROM surehook_notices WHERE no IN (SELECT value FROM json_each(?))`

	selectOldRollups = `SELECT minute, shard FROM surehook_rollups WHERE minute < ? ORDER BY minute, shard LIMIT ? + 0`
	deleteRollups    = `DELETE FROM surehook_rollups WHERE (minute, shard) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
)

// hasLive is the condition of the index surehook_heads_live, in the same words.
const hasLive = `h.pending + h.waiting + h.leased > 0`

// selectLiveEvents find the events with live deliveries in a range.
var selectLiveEvents = []string{
	`SELECT x.event FROM surehook_heads h CROSS JOIN surehook_pending x
		WHERE ` + hasLive + ` AND h.pending > 0 AND x.subscription = h.subscription AND x.event >= ?1 AND x.event <= ?2`,
	`SELECT x.event FROM surehook_heads h CROSS JOIN surehook_waiting x
		WHERE ` + hasLive + ` AND h.waiting > 0 AND x.subscription = h.subscription AND x.event >= ?1 AND x.event <= ?2`,
	`SELECT event FROM surehook_leases WHERE event >= ?1 AND event <= ?2`,
}

// pruning is one Prune at work.
type pruning struct {
	s   *Store
	ctx context.Context
	*rules.PrunePass
}

// Prune implements sender.DispatchStore. It looks for what is to go in a
// transaction that only reads, and takes the write lock to remove it. The pages that
// it frees are used again; the file does not shrink.
func (s *Store) Prune(ctx context.Context, params sender.PruneParams) (sender.Pruned, error) {
	batch, err := rules.NewPrunePass(params)
	if err != nil {
		return sender.Pruned{}, err
	}
	p := &pruning{s: s, ctx: ctx, PrunePass: batch}
	at := func(step func(before int64) (bool, error)) rules.PruneStep {
		return func(before time.Time) (bool, error) { return step(micros(before)) }
	}
	out, err := p.Run(rules.PruneSteps{
		DeadLetters: at(p.deadLetters), Cancelled: at(p.cancelled), Delivered: at(p.delivered),
		Events: at(p.events), Notices: at(p.notices), Rollups: at(p.rollups), Subscriptions: at(p.subscriptions), Objects: at(p.objects),
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

func (p *pruning) cancelled(before int64) (bool, error) {
	return p.ends(sender.StatusCancelled, before, &p.Out.Deliveries)
}

func (p *pruning) ends(status sender.Status, before int64, removed *int) (more bool, err error) {
	all, more, err := p.found(selectOldEnds, string(status), before)
	if err != nil || len(all) == 0 {
		return false, err
	}
	var gone []sender.DeliveryKey
	err = p.s.write(p.ctx, func(w *work) (err error) {
		// One that was redelivered since has lost its row.
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
func (w *work) fewerDead(gone []sender.DeliveryKey) error {
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

// until is the last expanded event that was published before a time.
func (w *work) until(before int64) (event int64, err error) {
	var expanded, seen int64
	if err := w.row(selectExpanded).Scan(&expanded, &seen); err != nil {
		return 0, err
	}
	event, err = w.lastBefore(before)
	return min(event, expanded), err
}

func (p *pruning) delivered(before int64) (more bool, err error) {
	var old []sender.DeliveryKey
	err = p.s.read(p.ctx, func(w *work) error {
		until, err := w.until(before) // what ended before was published before
		if err != nil {
			return err
		}
		looked := 0
		err = w.each(func(rows *sql.Rows) (bool, error) {
			var goes bool
			err := rows.Scan(&p.At.Event, &p.At.Subscription, &goes)
			if goes {
				old = append(old, sender.DeliveryKey{Event: p.At.Event, Subscription: p.At.Subscription})
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
		if err != nil || len(old) == 0 {
			return err
		}
		live := map[int64]bool{}
		for _, query := range selectLiveEvents {
			events, err := w.numbers(query, old[0], old[len(old)-1])
			if err != nil {
				return err
			}
			for _, event := range events {
				live[event] = true
			}
		}
		old = slices.DeleteFunc(old, func(event int64) bool { return live[event] })
		return nil
	})
	if err != nil || len(old) == 0 {
		return more, err
	}
	// What has neither a record nor anything live cannot be sent again, so it is still
	// like that.
	err = p.s.write(p.ctx, func(w *work) error {
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
		n, err := w.count(deleteEvents, list(old))
		p.Out.Events += n
		return err
	})
	return more, err
}

func (p *pruning) notices(before int64) (more bool, err error) {
	all, more, err := p.found(selectOldNotices, before)
	if err != nil || len(all) == 0 {
		return false, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		n, err := w.count(deleteNotices, list(all))
		p.Out.Notices += n
		return err
	})
	return more, err
}

func (p *pruning) rollups(before int64) (more bool, err error) {
	var all []sender.DeliveryKey // of (minute, shard)
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
		return err
	})
	return len(all) == p.Limit, err
}

// keys reads (event, subscription).
func (w *work) keys(query string, args ...any) (all []sender.DeliveryKey, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var k sender.DeliveryKey
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

// keyList is a JSON array of [event, subscription].
func keyList(keys []sender.DeliveryKey) string {
	b := []byte{'['}
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d]", k.Event, k.Subscription)
	}
	return string(append(b, ']'))
}
