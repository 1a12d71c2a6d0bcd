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
	replayDead   = `SELECT no, event, subscription, class FROM surehook_ended WHERE status = $4 AND no > $1 AND no <= $2 ORDER BY no LIMIT $3`
	replayDeadOf = `SELECT no, event, subscription, class FROM surehook_ended WHERE subscription = $5 AND status = $4 AND no > $1 AND no <= $2 ORDER BY no LIMIT $3`

	// The same in the order of their events, up to one of these.
	replayAged = `SELECT no, event, subscription, class, status FROM surehook_ended WHERE status = $4 AND (event, subscription) > ($1, $6) AND event <= $2
		ORDER BY event, subscription LIMIT $3`
	// replayAgedOf reads those of one subscription that ended with any status: no index is by
	// subscription, status and event.
	replayAgedOf = `SELECT no, event, subscription, class, status FROM surehook_ended WHERE subscription = $6 AND event > $1 AND event <= $2 ORDER BY event LIMIT $3`

	// Deliveries of redacted and of pruned events are never sent again.
	replayKept   = `coalesce(length(e.body) > 0, false)`
	replayMember = `coalesce(s.id, ''), coalesce(o.id, ''), coalesce(e.type, ''), e.created_at`
	replayOwner  = ` LEFT JOIN surehook_subscriptions s ON s.no = x.subscription LEFT JOIN surehook_subscribers o ON o.no = s.subscriber
		LEFT JOIN surehook_feed f ON f.position = x.event LEFT JOIN surehook_events e ON e.no = f.event`

	lastCode = `coalesce((SELECT a.status_code FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), 0)`

	selectReplayDead   = selectDead + replayDead + `) x` + replayOwner
	selectReplayDeadOf = selectDead + replayDeadOf + `) x` + replayOwner
	selectDead         = `SELECT x.no, x.event, x.subscription, ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (`

	selectReplayAged   = selectAged + replayAged + `) x` + replayOwner
	selectReplayAgedOf = selectAged + replayAgedOf + `) x` + replayOwner
	selectAged         = `SELECT x.event, x.event, x.subscription, x.status = $4 AND x.no <= $5 AND ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (`

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
	// The deliveries of one subscription that succeeded.
	selectReplayDeliveredOf = selectDelivered + `(SELECT d.*, $4::bigint AS replay FROM (
			SELECT DISTINCT ON (event) event, subscription FROM surehook_attempts WHERE subscription = $5 AND class = '' AND event > $1 AND event <= $2
			ORDER BY event LIMIT $3) d) x` + replayOwner
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

// resolve fixes the set of a replay that is created now.
func (w *work) resolve(set *replaySet) error {
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
	ahead := limit
	if of != nil {
		ahead = rules.Ahead(limit, len(of))
	}
	lists, err := w.replayed(w.queries(set, of, ahead))
	found, more = rules.Merge(lists, ahead, limit, comparePositions)
	return found, more, err
}

// replayed returns the deliveries that each of some queries reads, in their order.
func (w *work) replayed(queries []query) (lists [][]replayed, err error) {
	lists = make([][]replayed, len(queries))
	for i := range queries {
		queries[i] = queries[i].rows(func(rows rows) error {
			var c replayed
			var published timestamp
			err := rows.Scan(&c.no, &c.event, &c.position.subscription, &c.member, &c.ErrorClass, &c.StatusCode, &c.Subscription, &c.Subscriber, &c.EventType, &published)
			c.Published = published.time()
			lists[i] = append(lists[i], c)
			return err
		})
	}
	err = w.send(queries...)
	for _, list := range lists {
		slices.SortFunc(list, comparePositions)
	}
	return lists, err
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

// queries returns the statements that read up to a number of deliveries for each of some
// subscriptions, or for all.
func (w *work) queries(set *replaySet, of []int64, limit int) (qs []query) {
	delivered := set.filter.Status == sender.StatusDelivered
	switch {
	case of == nil && delivered:
		return []query{w.query(selectReplayDelivered, set.at.no, set.at.subscription, set.boundary, limit, set.replay)}
	case of == nil:
		return []query{w.query(selectReplayDead, set.at.no, set.boundary, limit, string(set.filter.Status))}
	}
	for _, no := range of {
		if delivered {
			qs = append(qs, w.query(selectReplayDeliveredOf, set.eventBefore(no), set.boundary, limit, set.replay, no))
		} else {
			qs = append(qs, w.query(selectReplayDeadOf, set.at.no, set.boundary, limit, string(set.filter.Status), no))
		}
	}
	return qs
}

// eventBefore returns the last event of a subscription that was looked at, in a set of
// delivered deliveries.
func (set *replaySet) eventBefore(subscription int64) int64 {
	if subscription > set.at.subscription {
		return set.at.no - 1
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
