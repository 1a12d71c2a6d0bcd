package postgres

import (
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const (
	// A batch looks at up to this many times its limit of rows that must stay.
	pruneLook = 4

	selectOldEnds  = `SELECT no, subscription FROM surehook_ended WHERE status = $1 AND ended_at < $2 ORDER BY ended_at LIMIT $3`
	deleteOldEnds  = `DELETE FROM surehook_ended WHERE no = ANY($1) RETURNING event, subscription`
	deleteAttempts = `DELETE FROM surehook_attempts a USING unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		WHERE a.event = u.event AND a.subscription = u.subscription`
	// holdHeads is lockHeads without reading the heads.
	holdHeads = `SELECT subscription FROM surehook_heads WHERE subscription = ANY($1) ORDER BY subscription FOR UPDATE`
	fewerDead = `UPDATE surehook_heads h SET dead = h.dead - u.n FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, n)
		WHERE h.subscription = u.subscription`

	selectOldRecords = `SELECT a.event, a.subscription, max(a.started_at) < $4 AND NOT (` + keepsRecord + `)
		FROM surehook_attempts a WHERE (a.event, a.subscription) > ($1, $2) AND a.event <= $3
		GROUP BY a.event, a.subscription ORDER BY a.event, a.subscription LIMIT $5`
	// A delivery with attempts is in one of these tables, unless it is delivered.
	keepsRecord = `EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = a.subscription AND x.event = a.event OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = a.subscription AND x.event = a.event OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = a.subscription AND x.event = a.event OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.subscription = a.subscription AND x.event = a.event OFFSET 0)`
	// selectStillOld selects those that were not sent again since they were found.
	selectStillOld = `SELECT a.event, a.subscription FROM unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		JOIN surehook_attempts a ON a.event = u.event AND a.subscription = u.subscription
		GROUP BY a.event, a.subscription HAVING max(a.started_at) < $3 AND NOT (` + keepsRecord + `)`
)

func (p *pruning) deadLetters(before timestamp) (bool, error) {
	return p.ends(sender.StatusDeadLettered, before, &p.Out.DeadLetters)
}

func (p *pruning) cancelled(before timestamp) (more bool, err error) {
	if more, err = p.ends(sender.StatusCancelled, before, &p.Out.Deliveries); more || err != nil || p.Out.Deliveries > 0 {
		return true, err
	}
	return p.ends(sender.StatusSuperseded, before, &p.Out.Deliveries)
}

func (p *pruning) ends(status sender.Status, before timestamp, removed *int) (more bool, err error) {
	var all, subscriptions []int64
	err = p.dispatching().read(p.ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var no, subscription int64
			err := r.Scan(&no, &subscription)
			all, subscriptions = append(all, no), append(subscriptions, subscription)
			return true, err
		}, selectOldEnds, string(status), before, p.Limit)
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	var gone []dispatch.DeliveryKey
	err = p.dispatching().write(p.ctx, func(w *work) (err error) {
		if status != sender.StatusCancelled { // nobody changes that
			if err := w.execs(holdHeads, distinct(subscriptions)); err != nil {
				return err
			}
		}
		// One that was redelivered since has no such row any more.
		if gone, err = w.keys(deleteOldEnds, all); err != nil || len(gone) == 0 {
			return err
		}
		if err := w.deleteAttempts(gone); err != nil || status != sender.StatusDeadLettered {
			return err
		}
		return w.fewerDead(gone)
	})
	*removed += len(gone)
	return len(all) == p.Limit, err
}

func (w *work) deleteAttempts(of []dispatch.DeliveryKey) error {
	return w.execs(deleteAttempts, eventsOf(of), subscriptionsOf(of))
}

// fewerDead subtracts the removed dead letters from the counts of their subscriptions.
func (w *work) fewerDead(gone []dispatch.DeliveryKey) error {
	counts := map[int64]int64{}
	for _, k := range gone {
		counts[k.Subscription]++
	}
	nos := slices.Sorted(maps.Keys(counts))
	return w.execs(fewerDead, nos, column(nos, func(no int64) int64 { return counts[no] }))
}

func (p *pruning) delivered(before timestamp) (more bool, err error) {
	var old []dispatch.DeliveryKey
	err = p.dispatching().read(p.ctx, func(w *work) error {
		var until int64
		if err := w.row(selectPositionBefore, before).Scan(&until); err != nil { // a delivery that ended before was published before
			return err
		}
		looked := 0
		return w.each(func(r rows) (bool, error) {
			var goes bool
			err := r.Scan(&p.At.Event, &p.At.Subscription, &goes)
			if goes {
				old = append(old, dispatch.DeliveryKey{Event: p.At.Event, Subscription: p.At.Subscription})
			}
			looked++
			more = looked == pruneLook*p.Limit || len(old) == p.Limit
			return !more, err
		}, selectOldRecords, p.At.Event, p.At.Subscription, until, before, pruneLook*p.Limit)
	})
	if err != nil || len(old) == 0 {
		return more, err
	}
	var still []dispatch.DeliveryKey
	err = p.dispatching().write(p.ctx, func(w *work) (err error) {
		if err := w.execs(holdHeads, distinct(subscriptionsOf(old))); err != nil {
			return err
		}
		if still, err = w.keys(selectStillOld, eventsOf(old), subscriptionsOf(old), before); err != nil || len(still) == 0 {
			return err
		}
		return w.deleteAttempts(still)
	})
	p.Out.Deliveries += len(still)
	return more, err
}

func eventsOf(keys []dispatch.DeliveryKey) []int64 {
	return column(keys, func(k dispatch.DeliveryKey) int64 { return k.Event })
}

func subscriptionsOf(keys []dispatch.DeliveryKey) []int64 {
	return column(keys, func(k dispatch.DeliveryKey) int64 { return k.Subscription })
}
