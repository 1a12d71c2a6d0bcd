package sqlite

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

// replayLook is how many deliveries are looked at in one go.
const replayLook = 1000

const (
	lastEnded = `SELECT coalesce(max(no), 0) FROM surehook_ended`

	// selectNamed finds a subscription that a filter names, even a deleted one.
	selectNamed = `SELECT no FROM surehook_subscriptions WHERE id = ?1 AND (?2 = '' OR subscriber = (SELECT no FROM surehook_subscribers WHERE id = ?2))`

	// replayDead reads dead letters, or superseded ones, in the order in which they ended.
	replayDead = `SELECT no, event, subscription, class FROM surehook_ended INDEXED BY surehook_ended_order WHERE status = ?4 AND no > ?1 AND no <= ?2 ORDER BY no LIMIT ?3 + 0`
	// replayDeadOf reads those of some subscriptions, each with where it was looked at last:
	// up to ?2 of each, and up to ?3 in all. The index alone tells which.
	replayDeadOf = `SELECT e.no, e.event, e.subscription, e.class FROM (SELECT n.no FROM json_each(?1) j CROSS JOIN surehook_ended n INDEXED BY surehook_ended_of
			WHERE n.subscription = j.value ->> 0 AND n.status = ?4 AND n.no > j.value ->> 1 AND n.no <= coalesce((SELECT l.no FROM surehook_ended l INDEXED BY surehook_ended_of
				WHERE l.subscription = j.value ->> 0 AND l.status = ?4 AND l.no > j.value ->> 1 AND l.no <= ?5 ORDER BY l.no LIMIT 1 OFFSET ?2 - 1), ?5)
			ORDER BY n.no LIMIT ?3 + 0) k CROSS JOIN surehook_ended e ON e.no = k.no`

	// The same in the order of their events, up to one of these.
	replayAged = `SELECT no, event, subscription, class, status FROM surehook_ended INDEXED BY surehook_ended_status WHERE status = ?4 AND (event, subscription) > (?1, ?6) AND event <= ?2
		ORDER BY event, subscription LIMIT ?3 + 0`
	// replayAgedOf reads those of one subscription that ended with any status: no index is by
	// subscription, status and event.
	replayAgedOf = `SELECT n.no, n.event, n.subscription, n.class, n.status FROM json_each(?1) j CROSS JOIN surehook_ended n
		WHERE n.subscription = j.value ->> 0 AND n.event > j.value ->> 1 AND n.event <= coalesce((SELECT l.event FROM surehook_ended l
			WHERE l.subscription = j.value ->> 0 AND l.event > j.value ->> 1 AND l.event <= ?6 ORDER BY l.event LIMIT 1 OFFSET ?2 - 1), ?6)
		ORDER BY n.event, n.subscription LIMIT ?3 + 0`

	// replayKept excludes the deliveries of redacted events: they are not sent again.
	replayKept   = `coalesce(length(e.body) > 0, 0)`
	replayMember = `coalesce(s.id, ''), coalesce(o.id, ''), coalesce(e.type, ''), coalesce(e.created_at, 0)`
	// replayOwner leaves out no row, whatever is missing: fewer rows than were asked for are
	// the last ones of a set.
	replayOwner = ` LEFT JOIN surehook_subscriptions s ON s.no = x.subscription LEFT JOIN surehook_subscribers o ON o.no = s.subscriber LEFT JOIN surehook_events e ON e.seq = x.event`

	lastCode = `coalesce((SELECT a.status_code FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), 0)`

	selectReplayDead   = `SELECT x.no, x.event, x.subscription, ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (` + replayDead + `) x` + replayOwner
	selectReplayDeadOf = `SELECT x.no, x.event, x.subscription, ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (` + replayDeadOf + `) x` + replayOwner

	selectReplayAged   = selectAged + replayAged + `) x` + replayOwner
	selectReplayAgedOf = selectAged + replayAgedOf + `) x` + replayOwner
	selectAged         = `SELECT x.event, x.event, x.subscription, x.status = ?4 AND x.no <= ?5 AND ` + replayKept + `, x.class, ` + lastCode + `, ` + replayMember + ` FROM (`

	// selectReplayDelivered reads deliveries that were attempted, however they ended.
	selectReplayDelivered = selectDelivered + `(SELECT event, subscription, ?5 AS replay FROM (SELECT DISTINCT event, subscription FROM surehook_attempts
			WHERE (event, subscription) > (?1, ?2) AND event <= ?3 ORDER BY event, subscription LIMIT ?4 + 0) d) x` + replayOwner
	// selectReplayDeliveredOf reads the deliveries of some subscriptions that have
	// succeeded, as in replayDeadOf.
	selectReplayDeliveredOf = selectDelivered + `(SELECT event, subscription, ?4 AS replay FROM (SELECT DISTINCT n.event, n.subscription FROM json_each(?1) j
			CROSS JOIN surehook_attempts n INDEXED BY surehook_attempts_delivered
			WHERE n.subscription = j.value ->> 0 AND n.class = '' AND n.event > j.value ->> 1 AND n.event <= coalesce((SELECT DISTINCT l.event FROM surehook_attempts l INDEXED BY surehook_attempts_delivered
				WHERE l.subscription = j.value ->> 0 AND l.class = '' AND l.event > j.value ->> 1 AND l.event <= ?5 ORDER BY l.event LIMIT 1 OFFSET ?2 - 1), ?5)
			ORDER BY n.event, n.subscription LIMIT ?3 + 0) d) x` + replayOwner
	// selectSubscriptionsOf reads a subscriber's subscriptions, the deleted ones too.
	selectSubscriptionsOf = `SELECT s.no FROM surehook_subscribers o CROSS JOIN surehook_subscriptions s WHERE o.id = ? AND s.subscriber = o.no ORDER BY s.no`
	// The fourth column of selectDelivered tells whether a delivery is delivered, and was
	// when the replay was created.
	selectDelivered = `SELECT x.event, x.event, x.subscription,
			EXISTS (SELECT 1 FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription AND a.class = '')
			AND NOT EXISTS (SELECT 1 FROM surehook_leases l WHERE l.subscription = x.subscription AND l.event = x.event)
			AND NOT EXISTS (SELECT 1 FROM surehook_waiting w WHERE w.subscription = x.subscription AND w.event = x.event)
			AND NOT EXISTS (SELECT 1 FROM surehook_lines w WHERE w.subscription = x.subscription AND w.event = x.event AND w.place IN (1, 2))
			AND NOT EXISTS (SELECT 1 FROM surehook_ended n WHERE n.subscription = x.subscription AND n.event = x.event)
			AND NOT EXISTS (SELECT 1 FROM surehook_replay_late t WHERE t.replay = x.replay AND t.event = x.event AND t.subscription = x.subscription)
			AND ` + replayKept + `,
			(SELECT a.class FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), ` + lastCode + `, ` + replayMember + ` FROM `
)

// replaySet is the set of deliveries that a replay sends, and how far it is.
type replaySet struct {
	filter       replay.Filter
	replay       int64 // the replay's number; 0: none yet
	subscription int64 // the number of the filter's; 0: any
	boundary     int64
	at           position
}

// position is the place that was looked at last. In a set of dead letters, no is their
// number in surehook_ended. In a set of delivered deliveries, no is the event, and
// several of them share it.
type position struct{ no, subscription int64 }

// replayed is a delivery that a replay looks at.
type replayed struct {
	replay.Candidate
	position
	event  int64
	member bool // it is in the set if the filter selects it
}

// begin sets where the set of a replay that is created now begins and ends.
func (w *work) begin(set *replaySet) error {
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
		var exists bool
		if err := w.row(`SELECT EXISTS (SELECT 1 FROM surehook_subscribers WHERE id = ?)`, f.Subscriber).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, f.Subscriber)
		}
	}
	if f.Status != sender.StatusDelivered {
		return w.row(lastEnded).Scan(&set.boundary)
	}
	if err := w.row(lastEvent).Scan(&set.boundary); err != nil {
		return err
	}
	var err error
	if !f.Since.IsZero() {
		set.at.subscription = never
		if set.at.no, err = w.lastBefore(microsFrom(f.Since)); err != nil {
			return err
		}
	}
	if !f.Until.IsZero() {
		until, err := w.lastBefore(microsFrom(f.Until))
		if err != nil {
			return err
		}
		set.boundary = min(set.boundary, until)
	}
	return nil
}

// next returns up to limit deliveries that follow in a set. more is false at the end of
// the set.
func (w *work) next(set *replaySet, limit int) (found []replayed, more bool, err error) {
	of, err := w.subscriptionsOf(set)
	if err != nil {
		return nil, false, err
	}
	if of == nil {
		found, err = w.following(set, limit)
		return found, len(found) == limit, err
	}
	ahead := rules.Ahead(limit, len(of))
	from := make([]position, len(of))
	for i, no := range of {
		from[i] = set.after(no)
	}
	found, err = w.followingOf(set, from, ahead, limit+1) // one that is not looked at tells that there is more
	found, more = rules.Merge(split(found, from), ahead, limit, comparePositions)
	return found, more, err
}

// following returns up to limit deliveries that follow in a set of all subscriptions.
func (w *work) following(set *replaySet, limit int) ([]replayed, error) {
	if set.filter.Status == sender.StatusDelivered {
		return w.replayed(selectReplayDelivered, set.at.no, set.at.subscription, set.boundary, limit, set.replay)
	}
	return w.replayed(selectReplayDead, set.at.no, set.boundary, limit, string(set.filter.Status))
}

// followingOf returns the deliveries of some subscriptions that follow where each was looked
// at last: up to each of each, and the first of these, up to most.
func (w *work) followingOf(set *replaySet, from []position, each, most int) ([]replayed, error) {
	if set.filter.Status == sender.StatusDelivered {
		return w.replayed(selectReplayDeliveredOf, pairs(from), each, most, set.replay, set.boundary)
	}
	return w.replayed(selectReplayDeadOf, pairs(from), each, most, string(set.filter.Status), set.boundary)
}

// after returns where a subscription's part of a set was looked at last.
func (set *replaySet) after(subscription int64) position {
	if set.filter.Status == sender.StatusDelivered && subscription > set.at.subscription {
		return position{set.at.no - 1, subscription} // the position is of an event, which may have several deliveries
	}
	return position{set.at.no, subscription}
}

// pairs returns positions as JSON: the subscription, and the number.
func pairs(from []position) string {
	b := []byte{'['}
	for i, p := range from {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d]", p.subscription, p.no)
	}
	return string(append(b, ']'))
}

// split returns the deliveries of each of some subscriptions.
func split(all []replayed, of []position) [][]replayed {
	by := map[int64][]replayed{}
	for _, c := range all {
		by[c.position.subscription] = append(by[c.position.subscription], c)
	}
	lists := make([][]replayed, len(of))
	for i, p := range of {
		lists[i] = by[p.subscription]
	}
	return lists
}

// subscriptionsOf returns the subscriptions that a set is bound to; nil: all.
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
	of, err := w.numbers(selectSubscriptionsOf, set.filter.Subscriber)
	return append([]int64{}, of...), err
}

func (w *work) replayed(query string, args ...any) (found []replayed, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var c replayed
		var published int64
		err := rows.Scan(&c.no, &c.event, &c.position.subscription, &c.member, &c.ErrorClass, &c.StatusCode, &c.Subscription, &c.Subscriber, &c.EventType, &published)
		c.Published = timeOf(published)
		found = append(found, c)
		return true, err
	}, query, args...)
	slices.SortFunc(found, comparePositions)
	return found, err
}

func comparePositions(a, b replayed) int {
	return cmp.Or(cmp.Compare(a.no, b.no), cmp.Compare(a.position.subscription, b.position.subscription))
}

// selects tells whether a candidate is to be sent again.
func (set *replaySet) selects(c *replayed) bool {
	return c.member && set.filter.Selects(c.Candidate)
}
