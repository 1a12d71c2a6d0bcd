package postgres

import (
	"slices"

	"github.com/surehook/surehook/internal/ident"
)

const (
	// pruneBytes bounds the bodies of a batch: the pages of a large one are freed one by
	// one.
	pruneBytes = 4 << 20

	// An event with a position is expanded whole, unless its outbox row is still there.
	selectOldEvents = `SELECT f.position, e.no, length(e.body), e.created_at >= $3
			OR EXISTS (SELECT 1 FROM surehook_attempts x WHERE x.event = f.position OFFSET 0)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'dead_lettered' AND x.event = f.position OFFSET 0)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'cancelled' AND x.event = f.position OFFSET 0)
			OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.status = 'superseded' AND x.event = f.position OFFSET 0)
			OR e.no = ANY ((SELECT begun FROM surehook_feed_head)::bigint[])
		FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position > $1 AND f.position <= $2 ORDER BY f.position LIMIT $4`
	// hasLive is the condition of the index surehook_heads_live, in the same words.
	hasLive = `h.pending + h.waiting + h.leased + h.behind > 0`
	// selectLiveEvents finds the positions with live deliveries in a range.
	selectLiveEvents = `SELECT x.event FROM surehook_heads h CROSS JOIN LATERAL (
			SELECT event FROM surehook_pending WHERE h.pending > 0 AND subscription = h.subscription AND event >= $1 AND event <= $2
			UNION ALL SELECT event FROM surehook_waiting WHERE h.waiting > 0 AND subscription = h.subscription AND event >= $1 AND event <= $2
			UNION ALL SELECT event FROM surehook_lines WHERE h.behind > 0 AND subscription = h.subscription AND event >= $1 AND event <= $2 AND place < 3
			UNION ALL SELECT event FROM surehook_leases WHERE h.leased > 0 AND subscription = h.subscription AND event >= $1 AND event <= $2) x
		WHERE ` + hasLive

	deleteKeys   = `DELETE FROM surehook_keys k USING surehook_events e WHERE e.no = ANY($1) AND k.event = e.id`
	raisePruned  = `UPDATE surehook_feed_pruned SET position = $1 WHERE position < $1`
	deleteFeed   = `DELETE FROM surehook_feed WHERE event = ANY($1)`
	deleteEvents = `DELETE FROM surehook_events WHERE no = ANY($1)`
)

// oldEvent is an event that may go.
type oldEvent struct{ position, no int64 }

func (p *pruning) events(before timestamp) (more bool, err error) {
	var old []oldEvent
	err = p.dispatching().read(p.ctx, func(w *work) (err error) {
		old, more, err = p.oldEvents(w, before)
		return err
	})
	if err != nil || len(old) == 0 {
		return more, err
	}
	// On one snapshot the event had no record, nothing live and no outbox row. Nothing of
	// it can be sent again, so that is still true.
	nos := column(old, func(e oldEvent) int64 { return e.no })
	n := int64(0)
	err = p.dispatching().write(p.ctx, func(w *work) error {
		if err := w.execs(deleteKeys, nos); err != nil {
			return err
		}
		if err := w.execs(raisePruned, old[len(old)-1].position); err != nil {
			return err
		}
		if !p.Objects.IsZero() {
			if err := w.execs(markForgettable, nos, int64(ident.MaxForgotten)); err != nil {
				return err
			}
		}
		if err := w.execs(deleteFeed, nos); err != nil {
			return err
		}
		if err := w.execs(removeKept, column(old, func(e oldEvent) int64 { return e.position })); err != nil {
			return err
		}
		n, err = w.exec(deleteEvents, nos)
		return err
	})
	p.Out.Events += int(n)
	return more, err
}

// oldEvents finds the next events that may go. more tells whether there may be others
// behind them.
func (p *pruning) oldEvents(w *work, before timestamp) (old []oldEvent, more bool, err error) {
	var until int64
	if err := w.row(selectPositionBefore, before).Scan(&until); err != nil {
		return nil, false, err
	}
	looked, bytes := 0, 0
	err = w.each(func(r rows) (bool, error) {
		var e oldEvent
		var size int
		var keeps bool
		err := r.Scan(&e.position, &e.no, &size, &keeps)
		p.At.Event = e.position
		if !keeps {
			old = append(old, e)
			bytes += size
		}
		looked++
		more = looked == pruneLook*p.Limit || len(old) == p.Limit || bytes >= pruneBytes
		return !more, err
	}, selectOldEvents, p.At.Event, until, before, pruneLook*p.Limit)
	if err != nil || len(old) == 0 {
		return nil, more, err
	}
	live, err := w.numbers(selectLiveEvents, old[0].position, old[len(old)-1].position)
	slices.Sort(live)
	old = slices.DeleteFunc(old, func(e oldEvent) bool {
		_, is := slices.BinarySearch(live, e.position)
		return is
	})
	return old, more, err
}
