package postgres

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

// replayLook is how many deliveries a step or a survey looks at in one go.
const replayLook = 1000

const (
	lastEnded = `SELECT coalesce(max(no), 0) FROM surehook_ended`
	// selectNamed finds a subscription that a filter names, even a deleted one.
	selectNamed  = `SELECT no FROM surehook_subscriptions WHERE id = $1 AND ($2::text = '' OR subscriber = (SELECT no FROM surehook_subscribers WHERE id = $2::text))`
	lastPosition = `SELECT position FROM surehook_feed_head`

	// lockEnded waits for the transactions that have ended deliveries and drawn numbers for
	// them, and lets no other one do so until the commit. So every delivery with a number
	// up to the last one is committed, and no other one ever gets such a number. An
	// autovacuum of the table gives way after the server's deadlock_timeout, 1 s. A VACUUM
	// that somebody has run does not, nor does one against wraparound.
	lockEnded = `LOCK TABLE surehook_ended IN SHARE MODE`

	// Dead letters, in the order in which they ended.
	replayDead = `SELECT no, event, subscription, class FROM surehook_ended WHERE status = $4 AND no > $1 AND no <= $2 ORDER BY no LIMIT $3`
	// replayDeadOf reads those of some subscriptions: up to $3 of each, and up to $4 in all.
	replayDeadOf = `SELECT y.no, y.event, y.subscription, y.class FROM ` + replayOf + ` (
			SELECT no, event, subscription, class FROM surehook_ended WHERE subscription = u.subscription AND status = $5 AND no > u.at AND no <= $6 ORDER BY no LIMIT $3) y
		ORDER BY y.no LIMIT $4`
	// replayOf are the subscriptions, each with where it was looked at last.
	replayOf = `unnest($1::bigint[], $2::bigint[]) AS u(subscription, at) CROSS JOIN LATERAL`

	// The same in the order of their events, up to one of these.
	replayAged = `SELECT no, event, subscription, class, status FROM surehook_ended WHERE status = $4 AND (event, subscription) > ($1, $6) AND event <= $2
		ORDER BY event, subscription LIMIT $3`
	// replayAgedOf reads those of one subscription that ended with any status: no index is by
	// subscription, status and event.
	replayAgedOf = `SELECT y.no, y.event, y.subscription, y.class, y.status FROM ` + replayOf + ` (
			SELECT no, event, subscription, class, status FROM surehook_ended WHERE subscription = u.subscription AND event > u.at AND event <= $7 ORDER BY event LIMIT $3) y
		ORDER BY y.event, y.subscription LIMIT $4`

	// Deliveries of redacted and of pruned events are never sent again.
	replayKept   = `coalesce(length(e.body) > 0, false)`
	replayMember = `coalesce(s.id, ''), coalesce(o.id, ''), coalesce(e.type, ''), e.created_at`
	replayOwner  = ` LEFT JOIN surehook_subscriptions s ON s.no = x.subscription LEFT JOIN surehook_subscribers o ON o.no = s.subscriber
		LEFT JOIN surehook_feed f ON f.position = x.event LEFT JOIN surehook_events e ON e.no = f.event`

	lastCode = `coalesce((SELECT a.status_code FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), 0)`

	selectReplayDead   = selectDead + replayDead + `) x` + replayOwner
	selectReplayDeadOf = selectDead + replayDeadOf + `) x` + replayOwner
	selectDead         = `SELECT x.no, x.event, x.subscription, ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (`

	selectReplayAged   = selectAged + `x.status = $4 AND x.no <= $5 AND ` + selectAgedRest + replayAged + `) x` + replayOwner
	selectReplayAgedOf = selectAged + `x.status = $5 AND x.no <= $6 AND ` + selectAgedRest + replayAgedOf + `) x` + replayOwner
	selectAged         = `SELECT x.event, x.event, x.subscription, `
	selectAgedRest     = replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (`

	// isDelivered tells whether a delivery x is delivered, and was when the replay was
	// created. Without OFFSET, PostgreSQL may read each whole table instead of looking for
	// one row of it.
	isDelivered = `EXISTS (SELECT 1 FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription AND a.class = '' OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM surehook_leases l WHERE l.subscription = x.subscription AND l.event = x.event OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM surehook_waiting w WHERE w.subscription = x.subscription AND w.event = x.event OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM surehook_lines w WHERE w.subscription = x.subscription AND w.event = x.event OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM surehook_ended n WHERE n.subscription = x.subscription AND n.event = x.event OFFSET 0)
			AND NOT EXISTS (SELECT 1 FROM surehook_replay_late t WHERE t.replay = x.replay AND t.event = x.event AND t.subscription = x.subscription OFFSET 0)`

	// All attempted deliveries, with any status.
	selectReplayDelivered = selectDelivered + `(SELECT d.*, $5::bigint AS replay FROM (
			SELECT DISTINCT event, subscription FROM surehook_attempts WHERE (event, subscription) > ($1, $2) AND event <= $3
			ORDER BY event, subscription LIMIT $4) d) x` + replayOwner
	// The deliveries of some subscriptions that succeeded, as in replayDeadOf.
	selectReplayDeliveredOf = selectDelivered + `(SELECT d.*, $5::bigint AS replay FROM (SELECT y.event, y.subscription FROM ` + replayOf + ` (
			SELECT DISTINCT ON (event) event, subscription FROM surehook_attempts WHERE subscription = u.subscription AND class = '' AND event > u.at AND event <= $6
			ORDER BY event LIMIT $3) y ORDER BY y.event, y.subscription LIMIT $4) d) x` + replayOwner
	// selectReplayOwned selects the subscriptions of a subscriber, even deleted ones.
	selectReplayOwned = `SELECT no FROM surehook_subscriptions WHERE subscriber = (SELECT no FROM surehook_subscribers WHERE id = $1)`

	selectDelivered = `SELECT x.event, x.event, x.subscription, ` + isDelivered + ` AND ` + replayKept + `,
			(SELECT a.class FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), ` + lastCode + `, ` + replayMember + ` FROM `
)

// replaySet is the set of deliveries that a replay is to send, and how far it is in it.
type replaySet struct {
	filter       replay.Filter
	replay       int64 // the number of the replay; 0: it has none yet
	subscription int64 // the number of the filter's subscription; 0: any
	boundary     int64
	at           position
}

// position is where in a set a replay looked last. In a set of dead letters no is a number
// of surehook_ended. In a set of delivered deliveries it is the event, which may have
// several.
type position struct{ no, subscription int64 }

// replayed is a delivery that may be sent again.
type replayed struct {
	replay.Candidate
	position
	event  int64
	member bool // it is of the set, if the filter selects it
}

func (c *replayed) key() dispatch.DeliveryKey {
	return dispatch.DeliveryKey{Event: c.event, Subscription: c.position.subscription}
}

// resolve fixes the set of a replay that is created now. lock is the statement that must go
// before the end of a set of dead letters is read, if any.
func (w *work) resolve(set *replaySet, lock string) error {
	f := set.filter
	for _, id := range f.Names() {
		var no int64
		err := w.row(selectNamed, id, f.Subscriber).Scan(&no)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
		}
		if err != nil {
			return err
		}
		if f.Subscription != "" {
			set.subscription = no
		}
	}
	if f.Subscriber != "" {
		var known bool
		if err := w.row(`SELECT EXISTS (SELECT 1 FROM surehook_subscribers WHERE id = $1)`, f.Subscriber).Scan(&known); err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, f.Subscriber)
		}
	}
	if f.Status != sender.StatusDelivered {
		if lock != "" { // only now: others wait for it
			if err := errors.Join(w.execs(boundLock), w.execs(lock)); err != nil {
				return err
			}
		}
		return w.row(lastEnded).Scan(&set.boundary)
	}
	if err := w.row(lastPosition).Scan(&set.boundary); err != nil {
		return err
	}
	first, last, err := w.positions(f.Since, f.Until)
	if err != nil {
		return err
	}
	set.boundary = min(set.boundary, last)
	set.at = position{max(first-1, 0), math.MaxInt64}
	return nil
}

// next returns the deliveries that follow in a set, up to a number. more is false at the
// end of the set.
func (w *work) next(set *replaySet, limit int) (found []replayed, more bool, err error) {
	of, err := w.subscriptionsOf(set)
	if err != nil {
		return nil, false, err
	}
	if of == nil {
		found, err = w.replayed(w.following(set, limit))
		return found, len(found) == limit, err
	}
	ahead := rules.Ahead(limit, len(of))
	after := column(of, func(no int64) int64 { return set.after(no) })
	found, err = w.replayed(w.followingOf(set, of, after, ahead, limit+1)) // one that is not looked at tells that there is more
	found, more = rules.Merge(split(found, of), ahead, limit, comparePositions)
	return found, more, err
}

// replayed returns the deliveries that a query reads, in their order.
func (w *work) replayed(q query) (found []replayed, err error) {
	err = w.send(q.rows(func(rows rows) error {
		var c replayed
		var published timestamp
		err := rows.Scan(&c.no, &c.event, &c.position.subscription, &c.member, &c.ErrorClass, &c.StatusCode, &c.Subscription, &c.Subscriber, &c.EventType, &published)
		c.Published = published.time()
		found = append(found, c)
		return err
	}))
	slices.SortFunc(found, comparePositions)
	return found, err
}

// split returns the deliveries of each of some subscriptions.
func split(all []replayed, of []int64) [][]replayed {
	by := map[int64][]replayed{}
	for _, c := range all {
		by[c.position.subscription] = append(by[c.position.subscription], c)
	}
	return column(of, func(no int64) []replayed { return by[no] })
}

// subscriptionsOf returns the subscriptions of a set; nil: all.
func (w *work) subscriptionsOf(set *replaySet) ([]int64, error) {
	switch {
	case set.subscription != 0:
		return []int64{set.subscription}, nil
	case len(set.filter.Groups) > 0:
		of := []int64{}
		for _, id := range set.filter.Names() {
			some, err := w.numbers(selectNamed, id, set.filter.Subscriber)
			if err != nil {
				return nil, err
			}
			of = append(of, some...)
		}
		return of, nil
	case set.filter.Subscriber == "":
		return nil, nil
	}
	of, err := w.numbers(selectReplayOwned, set.filter.Subscriber)
	return append([]int64{}, of...), err
}

// following reads up to a number of deliveries that follow in a set of all subscriptions.
func (w *work) following(set *replaySet, limit int) query {
	if set.filter.Status == sender.StatusDelivered {
		return w.query(selectReplayDelivered, set.at.no, set.at.subscription, set.boundary, limit, set.replay)
	}
	return w.query(selectReplayDead, set.at.no, set.boundary, limit, string(set.filter.Status))
}

// followingOf reads the deliveries of some subscriptions that follow where each was looked
// at last: up to each of each, and the first of these, up to most.
func (w *work) followingOf(set *replaySet, of, after []int64, each, most int) query {
	if set.filter.Status == sender.StatusDelivered {
		return w.query(selectReplayDeliveredOf, of, after, each, most, set.replay, set.boundary)
	}
	return w.query(selectReplayDeadOf, of, after, each, most, string(set.filter.Status), set.boundary)
}

// after returns where a subscription's part of a set was looked at last.
func (set *replaySet) after(subscription int64) int64 {
	if set.filter.Status == sender.StatusDelivered && subscription > set.at.subscription {
		return set.at.no - 1 // the position is of an event, which may have several deliveries
	}
	return set.at.no
}

func comparePositions(a, b replayed) int {
	return cmp.Or(cmp.Compare(a.no, b.no), cmp.Compare(a.position.subscription, b.position.subscription))
}

// selects tells whether a candidate is to be sent again.
func (set *replaySet) selects(c *replayed) bool {
	return c.member && set.filter.Selects(c.Candidate)
}
