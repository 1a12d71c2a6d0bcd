package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const selectBody = `SELECT coalesce((SELECT body FROM surehook_bodies WHERE event = ?1 AND subscription = ?2), body) FROM surehook_events WHERE seq = ?1`

// Delivery implements history.Store.
func (s *Store) Delivery(ctx context.Context, id string, q history.AttemptQuery) (out sender.Delivery, err error) {
	err = s.read(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		d, err := w.delivery(k, s.now())
		if err != nil {
			return err
		}
		out = d.Delivery
		if out.Attempts, err = w.attempts(k, q); err != nil {
			return err
		}
		if out.Redacted {
			return nil
		}
		return w.row(selectBody, k.Event, k.Subscription).Scan(&out.Body)
	})
	return out, aboutDelivery(id, err)
}

func aboutDelivery(id string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
	}
	return fail("reading a delivery", err)
}

// Deliveries implements history.Store. It lists by event, newest first, then by
// subscription, oldest first.
func (s *Store) Deliveries(ctx context.Context, q history.DeliveryQuery) (page []sender.Delivery, next string, err error) {
	limit, after, err := rules.Delivery(q.Limit, q.Cursor, dispatch.DeliveryKey{Event: math.MaxInt64})
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		sc, found, err := w.scope(&q)
		if err != nil || !found {
			return err
		}
		page, next, err = w.deliveries(&q, sc, after, limit, s.now())
		return err
	})
	if err != nil {
		return nil, "", fail("listing deliveries", err)
	}
	return page, next, nil
}

// deliveries looks at candidates until a page is full, or enough were looked at.
func (w *work) deliveries(q *history.DeliveryQuery, sc scope, after dispatch.DeliveryKey, limit int, now int64) (page []sender.Delivery, next string, err error) {
	m, err := w.candidates(q.Status, sc, after)
	if err != nil {
		return nil, "", err
	}
	for examined, size := 0, limit+1; examined < history.MaxExamined; size = min(2*size, 512) {
		some, err := m.take(min(size, history.MaxExamined-examined))
		if err != nil || len(some) == 0 {
			return page, "", err
		}
		examined += len(some)
		if err := w.unlikely(q, some); err != nil {
			return nil, "", err
		}
		for _, c := range some {
			if c.likely {
				d, err := w.delivery(c.DeliveryKey, now)
				if err != nil && !errors.Is(err, errNoDelivery) {
					return nil, "", err
				}
				if err == nil && (q.Status == "" || d.Status == q.Status) && q.MatchesLast(d.LastErrorClass, d.LastStatusCode) {
					if len(page) == limit {
						return page, rules.DeliveryCursor(after), nil
					}
					page = append(page, d.Delivery)
				}
			}
			after = c.DeliveryKey
		}
	}
	return page, rules.DeliveryCursor(after), nil
}

const selectEventInfos = `SELECT seq, type, object_type, object_id, created_at FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`

// unlikely marks the candidates whose events or last attempts the query does not ask
// for. That is cheaper than to read whole deliveries.
func (w *work) unlikely(q *history.DeliveryQuery, some []candidate) error {
	var events []int64
	for _, c := range some {
		events = append(events, c.Event)
	}
	matching := map[int64]bool{}
	err := w.each(func(rows *sql.Rows) (bool, error) {
		var seq, created int64
		var e sender.EventInfo
		err := rows.Scan(&seq, &e.Type, &e.Object.Type, &e.Object.ID, &created)
		e.CreatedAt = timeOf(created)
		matching[seq] = q.MatchesEvent(e)
		return true, err
	}, selectEventInfos, list(slices.Compact(events)))
	if err != nil {
		return err
	}
	for i := range some {
		some[i].likely = some[i].likely && matching[some[i].Event]
	}
	if q.Class == "" && q.StatusCode == 0 {
		return nil
	}
	return w.unlikelyAnswers(q, some)
}

// selectLastAnswers reads the last attempts of deliveries, given as a list of pairs of event
// and subscription.
const selectLastAnswers = `SELECT j.key, a.class, a.status_code FROM json_each(?) j CROSS JOIN surehook_attempts a ON a.event = j.value ->> 0 AND a.subscription = j.value ->> 1
		AND NOT EXISTS (SELECT 1 FROM surehook_attempts l WHERE l.event = a.event AND l.subscription = a.subscription AND l.number > a.number)`

// unlikelyAnswers marks the candidates whose last attempts the query does not ask for.
func (w *work) unlikelyAnswers(q *history.DeliveryQuery, some []candidate) error {
	var pairs [][2]int64
	var of []*candidate
	for i := range some {
		if c := &some[i]; c.likely {
			c.likely = q.MatchesLast(sender.ClassNone, 0) // unless it was attempted
			pairs, of = append(pairs, [2]int64{c.Event, c.Subscription}), append(of, c)
		}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	return w.each(func(rows *sql.Rows) (bool, error) {
		var n, code int
		var class sender.Class
		err := rows.Scan(&n, &class, &code)
		of[n].likely = q.MatchesLast(class, code)
		return true, err
	}, selectLastAnswers, string(list))
}

// scope finds the numbers that bound a query. found is false if there is nothing of an id
// that the query names.
func (w *work) scope(q *history.DeliveryQuery) (sc scope, found bool, err error) {
	if sc.low, sc.high, err = w.between(q.Since, q.Until); err != nil {
		return sc, false, err
	}
	event := int64(0)
	for _, part := range []struct {
		id, query string
		no        *int64
	}{
		{q.Event, `SELECT seq FROM surehook_events WHERE id = ?`, &event},
		{q.Subscription, `SELECT no FROM surehook_subscriptions WHERE id = ?`, &sc.subscription},
		{q.Subscriber, selectOwner, &sc.subscriber},
	} {
		if part.id == "" {
			continue
		}
		err := w.row(part.query, part.id).Scan(part.no)
		if errors.Is(err, sql.ErrNoRows) {
			return sc, false, nil
		}
		if err != nil {
			return sc, false, err
		}
	}
	if q.Event != "" {
		sc.low, sc.high = max(sc.low, event), min(sc.high, event)
	}
	return sc, sc.low <= sc.high, nil
}

// selectOwner finds a deleted subscriber too.
const selectOwner = `SELECT no FROM surehook_subscribers WHERE id = ?`

// between returns the first and the last event of a time span. A zero time does not bound
// it.
func (w *work) between(since, until time.Time) (low, high int64, err error) {
	high = math.MaxInt64
	if !since.IsZero() {
		if low, err = w.lastBefore(microsFrom(since)); err != nil {
			return 0, 0, err
		}
		low++
	}
	if !until.IsZero() {
		high, err = w.lastBefore(microsFrom(until))
	}
	return low, high, err
}
