package postgres

import "github.com/surehook/surehook/sender"

const (
	// All deliveries of a swept subscription have ended. A delivered one has an attempt
	// that succeeded, and any other one is in surehook_ended.
	keepsSubscription = `EXISTS (SELECT 1 FROM surehook_attempts x WHERE x.subscription = s.no AND x.class = '' OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.subscription = s.no OFFSET 0)`
	selectOldSubscriptions = `SELECT s.no, s.swept_at < $2 AND NOT (` + keepsSubscription + `)
		FROM surehook_subscriptions s WHERE s.status = 'swept' AND s.no > $1 ORDER BY s.no LIMIT $3`

	// A redelivery takes the record away under the lock of the head. So records are looked
	// for again behind that lock.
	lockEndedHeads = `SELECT h.subscription FROM surehook_heads h WHERE h.subscription = ANY($1) AND h.pending + h.waiting + h.leased + h.behind = 0
		ORDER BY h.subscription FOR UPDATE SKIP LOCKED`
	deleteSubscriptions = `DELETE FROM surehook_subscriptions WHERE no = ANY(ARRAY(
			SELECT s.no FROM surehook_subscriptions s WHERE s.no = ANY($1) AND s.status = 'swept' AND NOT (` + keepsSubscription + `)
			ORDER BY s.no FOR UPDATE OF s SKIP LOCKED)) RETURNING no`
	deleteHeads      = `DELETE FROM surehook_heads WHERE subscription = ANY($1)`
	deleteAllSkipped = `DELETE FROM surehook_left WHERE subscription = ANY($1)`
	// buriedAtOnce bounds how many subscribers lose their turns in a batch.
	buriedAtOnce = 1000
	// deleteTurns deletes the turns of subscribers that can have nothing due any more.
	deleteTurns = `WITH o AS MATERIALIZED (SELECT no FROM surehook_subscribers WHERE deleted = 2 ORDER BY no LIMIT $1 FOR UPDATE SKIP LOCKED),
		u AS (UPDATE surehook_subscribers s SET deleted = 3 FROM o WHERE s.no = o.no)
		DELETE FROM surehook_turns t USING o CROSS JOIN generate_series(0, $2::bigint - 1) AS l(lane) WHERE t.lane = l.lane AND t.subscriber = o.no`
)

func (p *pruning) subscriptions(before timestamp) (more bool, err error) {
	var old []int64
	err = p.dispatching().read(p.ctx, func(w *work) error {
		looked := 0
		return w.each(func(r rows) (bool, error) {
			var goes bool
			err := r.Scan(&p.At.Subscription, &goes)
			if goes {
				old = append(old, p.At.Subscription)
			}
			looked++
			more = looked == pruneLook*p.Limit || len(old) == p.Limit
			return !more, err
		}, selectOldSubscriptions, p.At.Subscription, before, pruneLook*p.Limit)
	})
	if err != nil || len(old) == 0 && more {
		return more, err
	}
	var gone []int64
	err = p.dispatching().write(p.ctx, func(w *work) error {
		locked, err := w.numbers(lockEndedHeads, old)
		if err != nil {
			return err
		}
		if gone, err = w.numbers(deleteSubscriptions, locked); err != nil {
			return err
		}
		for _, query := range []string{deleteHeads, deleteAllSkipped, deleteWakes} {
			if err := w.execs(query, gone); err != nil {
				return err
			}
		}
		return w.execs(deleteTurns, buriedAtOnce, int64(sender.Lanes))
	})
	p.Out.Subscriptions += len(gone)
	return more, err
}
