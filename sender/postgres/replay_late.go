package postgres

import "math"

const (
	// lockLate waits for the recordings that have looked for replays of delivered
	// deliveries: insertLate locks the table before it takes its snapshot. It lets no other
	// one look until the commit. So a delivery that becomes delivered is committed before a
	// replay is created, or recorded as too late for it. An autovacuum of the table
	// gives way after the server's deadlock_timeout, 1 s.
	lockLate = `LOCK TABLE surehook_replay_late IN SHARE ROW EXCLUSIVE MODE`
	// boundLock bounds how long lockLate and lockEnded make recordings wait.
	boundLock = `SELECT set_config('lock_timeout', '2s', true)`

	// deleteLate deletes the rows that replays have passed. deleteOrphanedLate deletes
	// those of replays that ended: a recording that saw such a replay before its end may
	// commit after it.
	deleteLate = `DELETE FROM surehook_replay_late l USING unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(replay, event, subscription)
		WHERE l.replay = u.replay AND (l.event, l.subscription) <= (u.event, u.subscription)`
	deleteOrphanedLate = `DELETE FROM surehook_replay_late WHERE replay < (SELECT coalesce(min(no), 9223372036854775807) FROM surehook_replays
		WHERE status_of = 'delivered' AND status IN ('running', 'paused'))`
)

// insertLate notes deliveries that became delivered, for the replays of delivered
// deliveries that have not reached their positions.
var insertLate = overRows(`INSERT INTO surehook_replay_late (replay, event, subscription)
		SELECT r.no, u.event, u.subscription FROM surehook_replays r CROSS JOIN unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		WHERE r.status_of = 'delivered' AND r.status IN ('running', 'paused') AND r.boundary >= u.event AND (r.at, r.at_subscription) < (u.event, u.subscription)
		ON CONFLICT DO NOTHING`)

// forgetLate deletes the notes of late deliveries up to where replays are, and all notes of
// replays that ended.
func (w *work) forgetLate(rs []*replayRow) error {
	if len(rs) == 0 {
		return nil
	}
	to := make([]position, len(rs))
	ended := false
	for i, r := range rs {
		to[i] = r.set.at
		if r.ended() {
			to[i], ended = position{math.MaxInt64, math.MaxInt64}, true
		}
	}
	err := w.execs(deleteLate, column(rs, func(r *replayRow) int64 { return r.no }),
		column(to, func(p position) int64 { return p.no }), column(to, func(p position) int64 { return p.subscription }))
	if err != nil || !ended {
		return err
	}
	return w.execs(deleteOrphanedLate)
}
