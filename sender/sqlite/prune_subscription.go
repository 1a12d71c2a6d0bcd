package sqlite

import (
	"database/sql"

	"github.com/surehook/surehook/sender"
)

const (
	// keepsSubscription is true of a swept subscription that has deliveries. All have
	// ended. So each is delivered, and has an attempt that succeeded, or it is in
	// surehook_ended.
	keepsSubscription = `EXISTS (SELECT 1 FROM surehook_attempts x WHERE x.subscription = s.no AND x.class = '')
		OR EXISTS (SELECT 1 FROM surehook_ended x WHERE x.subscription = s.no)
		OR EXISTS (SELECT 1 FROM surehook_heads x WHERE x.subscription = s.no AND x.pending + x.waiting + x.leased + x.behind > 0)`
	selectOldSubscriptions = `SELECT s.no, s.swept_at < ?2 AND NOT (` + keepsSubscription + `)
		FROM surehook_subscriptions s WHERE s.status = 'swept' AND s.no > ?1 ORDER BY s.no LIMIT ?3 + 0`

	deleteSubscriptions = `DELETE FROM surehook_subscriptions AS s WHERE s.no IN (SELECT value FROM json_each(?)) AND s.status = 'swept' AND NOT (` + keepsSubscription + `) RETURNING no`
	deleteHeads         = `DELETE FROM surehook_heads WHERE subscription IN (SELECT value FROM json_each(?))`
	deleteSkips         = `DELETE FROM surehook_left WHERE subscription IN (SELECT value FROM json_each(?))`

	// selectBuried finds subscribers that have nothing that could be due any more.
	selectBuried = `SELECT no FROM surehook_subscribers WHERE deleted = 2 ORDER BY no LIMIT 1000`
	deleteTurns  = `DELETE FROM surehook_turns WHERE lane = ? AND subscriber IN (SELECT value FROM json_each(?))`
	markBuried   = `UPDATE surehook_subscribers SET deleted = 3 WHERE no IN (SELECT value FROM json_each(?))`
)

func (p *pruning) subscriptions(before int64) (more bool, err error) {
	var old, buried []int64
	err = p.s.read(p.ctx, func(w *work) error {
		looked := 0
		err := w.each(func(rows *sql.Rows) (bool, error) {
			var goes bool
			err := rows.Scan(&p.At.Subscription, &goes)
			if goes {
				old = append(old, p.At.Subscription)
			}
			looked++
			more = looked == pruneLook*p.Limit || len(old) == p.Limit
			return !more, err
		}, selectOldSubscriptions, p.At.Subscription, before, pruneLook*p.Limit)
		if err == nil && !more {
			buried, err = w.numbers(selectBuried)
		}
		return err
	})
	if err != nil || len(old)+len(buried) == 0 {
		return more, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		gone, err := w.numbers(deleteSubscriptions, list(old))
		if err != nil {
			return err
		}
		p.Out.Subscriptions += len(gone)
		for _, query := range []string{deleteHeads, deleteSkips} {
			if err := w.execs(query, list(gone)); err != nil {
				return err
			}
		}
		if err := w.bury(buried); err != nil || len(gone) == 0 {
			return err
		}
		return w.changed()
	})
	return more, err
}

// bury takes away the turns of subscribers.
func (w *work) bury(subscribers []int64) error {
	if len(subscribers) == 0 {
		return nil
	}
	for lane := range sender.Lanes {
		if err := w.execs(deleteTurns, lane, list(subscribers)); err != nil {
			return err
		}
	}
	return w.execs(markBuried, list(subscribers))
}
