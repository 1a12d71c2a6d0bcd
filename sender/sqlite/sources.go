package sqlite

import (
	"database/sql"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
)

// source lists the keys of deliveries, in the order of compareKeys: up to n of them
// after a given one.
type source func(after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error)

// sources together hold all deliveries that a query may select, whatever more.
func (r *reader) sources(q sender.DeliveryQuery, event, subscription int64) (all []source, err error) {
	switch {
	case event != 0:
		return []source{r.ofEvent(event)}, nil
	case subscription != 0:
		return r.sourcesOf(q.Status, subscription)
	}
	switch q.Status {
	case sender.StatusPending:
		floor, err := r.firstUnclaimed()
		return []source{r.all(floor), r.waiting, r.leased(0)}, err
	case sender.StatusAwaitingRetry:
		return []source{r.waiting, r.leased(0)}, nil
	case sender.StatusDeadLettered:
		return []source{r.ended(q.Status)}, nil
	case sender.StatusCancelled:
		all = []source{r.ended(q.Status)}
		var deleted []int64
		err := r.each(func(rows *sql.Rows) (bool, error) {
			var no int64
			err := rows.Scan(&no)
			deleted = append(deleted, no)
			return true, err
		}, selectDeleted, -1)
		for _, no := range deleted {
			of, err := r.liveOf(no)
			if err != nil {
				return nil, err
			}
			all = append(all, of...)
		}
		return all, err
	}
	return []source{r.all(0)}, nil
}

// sourcesOf are those of one subscription.
func (r *reader) sourcesOf(status sender.Status, no int64) ([]source, error) {
	switch status {
	case sender.StatusPending:
		return r.liveOf(no)
	case sender.StatusAwaitingRetry:
		return []source{r.waitingOf(no), r.leased(no)}, nil
	case sender.StatusDeadLettered:
		return []source{r.endedOf(no)}, nil
	case sender.StatusCancelled:
		live, err := r.liveOf(no)
		return append(live, r.endedOf(no)), err
	}
	return []source{r.of(no, 0)}, nil
}

// liveOf are those of a subscription's deliveries that are not at their end.
func (r *reader) liveOf(no int64) ([]source, error) {
	sub, err := r.sub(no)
	return []source{r.of(no, sub.claimed), r.waitingOf(no), r.leased(no)}, err
}

// before is the number that the events of a subscription's deliveries are less
// than that come after a key.
func before(after sender.DeliveryKey, subscription int64) int64 {
	if subscription > after.Subscription {
		return after.Event + 1
	}
	return after.Event
}

const selectOlderQueues = `SELECT events FROM surehook_queues WHERE subscription = ? AND event < ? ORDER BY event DESC`

// of lists a subscription's deliveries of events after a floor.
func (r *reader) of(no, floor int64) source {
	return func(after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
		bound := before(after, no)
		add := func(packed []byte) error {
			events, err := unpackEvents(nil, packed, floor)
			for _, e := range slices.Backward(events) {
				if e.event < bound && len(keys) < n {
					keys = append(keys, sender.DeliveryKey{Event: e.event, Subscription: no})
				}
			}
			return err
		}
		// The row that the bound is in, and those before it.
		scan := func(rows *sql.Rows) (bool, error) {
			var last, madeAt int64
			var packed sql.RawBytes
			if err := rows.Scan(&last, &madeAt, &packed); err != nil {
				return false, err
			}
			return true, add(packed)
		}
		if err := r.each(scan, selectQueueOf, no, bound); err != nil {
			return nil, err
		}
		err = r.each(func(rows *sql.Rows) (bool, error) {
			var packed sql.RawBytes
			if err := rows.Scan(&packed); err != nil {
				return false, err
			}
			had := len(keys)
			err := add(packed)
			return len(keys) < n && len(keys) > had, err // a row without any is below the floor
		}, selectOlderQueues, no, bound)
		return keys, err
	}
}

const (
	selectFrom  = `SELECT event, deliveries FROM surehook_deliveries WHERE (event, subscription) >= (?, ?) ORDER BY event, subscription`
	selectUntil = `SELECT event FROM surehook_deliveries WHERE event < ? ORDER BY event DESC, subscription DESC LIMIT 1`
)

// ofEvent lists an event's deliveries.
func (r *reader) ofEvent(seq int64) source {
	return func(after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
		from := int64(0)
		switch {
		case after.Event < seq:
			return nil, nil
		case after.Event == seq && after.Subscription == math.MaxInt64:
			return nil, nil
		case after.Event == seq:
			from = after.Subscription + 1
		}
		err = r.each(func(rows *sql.Rows) (bool, error) {
			var last int64
			var packed sql.RawBytes
			if err := rows.Scan(&last, &packed); err != nil {
				return false, err
			}
			row, err := unpackDeliveries(packed)
			for _, k := range row {
				if k.Event == seq && k.Subscription >= from && len(keys) < n {
					keys = append(keys, k)
				}
			}
			return last == seq && len(keys) < n, err
		}, selectFrom, seq, from)
		return keys, err
	}
}

// all lists the deliveries of events after a floor, event by event.
func (r *reader) all(floor int64) source {
	return func(after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
		if keys, err = r.ofEvent(after.Event)(after, n); err != nil {
			return nil, err
		}
		for event := after.Event; len(keys) < n; {
			if event, err = r.eventBefore(event); err != nil || event <= floor {
				break
			}
			more, err := r.ofEvent(event)(newest, n-len(keys))
			if err != nil {
				return nil, err
			}
			keys = append(keys, more...)
		}
		return keys, err
	}
}

// eventBefore is the newest event before another one that has deliveries; 0 if
// there is none.
func (r *reader) eventBefore(bound int64) (event int64, err error) {
	// It is in the row that the bound is in, or the last of the row before.
	err = r.each(func(rows *sql.Rows) (bool, error) {
		var last int64
		var packed sql.RawBytes
		if err := rows.Scan(&last, &packed); err != nil {
			return false, err
		}
		row, err := unpackDeliveries(packed)
		for _, k := range row {
			if k.Event < bound {
				event = k.Event
			}
		}
		return false, err
	}, selectFrom, bound, 0)
	if err != nil || event != 0 {
		return event, err
	}
	return event, r.each(func(rows *sql.Rows) (bool, error) { return false, rows.Scan(&event) }, selectUntil, bound)
}

const selectFirstUnclaimed = `SELECT coalesce(min(h.claimed), 9223372036854775807) FROM surehook_heads h
	WHERE h.next_due IS NOT NULL
	AND EXISTS (SELECT 1 FROM surehook_queues q WHERE q.subscription = h.subscription AND q.event > h.claimed)`

// firstUnclaimed is the event after which there are deliveries that were never
// claimed, of active subscriptions.
func (r *reader) firstUnclaimed() (event int64, err error) {
	err = r.row(selectFirstUnclaimed).Scan(&event)
	return event, err
}

// leased lists the deliveries in flight, of a subscription or (0) of all.
func (r *reader) leased(no int64) source {
	return func(after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
		for i := range r.leases.all {
			if k := r.leases.all[i].key; (no == 0 || k.Subscription == no) && compareKeys(k, after) > 0 {
				keys = append(keys, k)
			}
		}
		return firsts(n, keys), nil
	}
}

const (
	selectNewestWaiting = `SELECT event, subscription FROM surehook_waiting
		WHERE event <= ?1 AND (event < ?1 OR subscription > ?2) ORDER BY event DESC, subscription LIMIT ?3`
	selectNewestWaitingOf = `SELECT event, subscription FROM surehook_waiting
		WHERE subscription = ? AND event < ? ORDER BY event DESC LIMIT ?`
	selectNewestEnded = `SELECT event, subscription FROM surehook_ended
		WHERE status = ?4 AND event <= ?1 AND (event < ?1 OR subscription > ?2) ORDER BY event DESC, subscription LIMIT ?3`
	selectNewestEndedOf = `SELECT event, subscription FROM surehook_ended
		WHERE subscription = ? AND event < ? ORDER BY event DESC LIMIT ?`
)

func (r *reader) keys(query string, args ...any) (keys []sender.DeliveryKey, err error) {
	err = r.each(func(rows *sql.Rows) (bool, error) {
		var k sender.DeliveryKey
		err := rows.Scan(&k.Event, &k.Subscription)
		keys = append(keys, k)
		return true, err
	}, query, args...)
	return keys, err
}

func (r *reader) waiting(after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error) {
	return r.keys(selectNewestWaiting, after.Event, after.Subscription, n)
}

func (r *reader) waitingOf(no int64) source {
	return func(after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error) {
		return r.keys(selectNewestWaitingOf, no, before(after, no), n)
	}
}

func (r *reader) ended(status sender.Status) source {
	return func(after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error) {
		return r.keys(selectNewestEnded, after.Event, after.Subscription, n, string(status))
	}
}

func (r *reader) endedOf(no int64) source {
	return func(after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error) {
		return r.keys(selectNewestEndedOf, no, before(after, no), n)
	}
}
