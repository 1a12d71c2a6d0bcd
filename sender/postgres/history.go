package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// lookMax bounds how much a list looks at in one read: while its page is not full, it
	// reads twice as much each time.
	lookMax = 1000
)

// Delivery implements history.Store.
func (c *core) Delivery(ctx context.Context, id string, q history.AttemptQuery) (out sender.Delivery, err error) {
	err = c.read(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		d, err := w.delivery(k)
		if err != nil {
			return err
		}
		out = d.Delivery
		body := &out.Body
		if out.Redacted {
			body = nil
		}
		out.Attempts, err = w.full(k, q, body)
		return err
	})
	return out, aboutDelivery(id, err)
}

func aboutDelivery(id string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
	}
	return fail("reading a delivery", err)
}

// Deliveries implements history.Store: by event, newest first, then by
// subscription, oldest first.
func (c *core) Deliveries(ctx context.Context, q history.DeliveryQuery) (page []sender.Delivery, next string, err error) {
	limit, after, err := rules.Delivery(q.Limit, q.Cursor, dispatch.DeliveryKey{Event: math.MaxInt64})
	if err != nil {
		return nil, "", err
	}
	err = c.read(ctx, func(w *work) error {
		sc, known, err := w.scope(&q)
		if err != nil || !known {
			return err
		}
		walk := walk{work: w, scope: sc, status: q.Status, after: after}
		page, next, err = walk.page(&q, limit)
		return err
	})
	if err != nil {
		return nil, "", fail("listing deliveries", err)
	}
	return page, next, nil
}

// page looks at candidates until a page is full, or enough were looked at.
func (w *walk) page(q *history.DeliveryQuery, limit int) (page []sender.Delivery, next string, err error) {
	after, look := w.after, limit+1
	for examined := 0; examined < history.MaxExamined; look = min(2*look, lookMax) {
		some, err := w.take(min(look, history.MaxExamined-examined))
		if err != nil || len(some) == 0 {
			return page, "", err
		}
		examined += len(some)
		if err := w.unlikely(q, some); err != nil {
			return nil, "", err
		}
		for len(some) > 0 {
			n, keys := firstLikely(some, limit+1-len(page))
			found, err := w.deliveries(keys)
			if err != nil {
				return nil, "", err
			}
			for _, e := range some[:n] {
				d := found[e.DeliveryKey]
				if d != nil && (q.Status == "" || d.Status == q.Status) && q.MatchesLast(d.LastErrorClass, d.LastStatusCode) {
					if len(page) == limit {
						return page, rules.DeliveryCursor(after), nil
					}
					page = append(page, d.Delivery)
				}
				after = e.DeliveryKey
			}
			some = some[n:]
		}
	}
	return page, rules.DeliveryCursor(after), nil
}

// firstLikely returns the keys of the first likely entries, up to a number, and how many
// entries they and those between them are.
func firstLikely(some []entry, most int) (n int, keys []dispatch.DeliveryKey) {
	for i, e := range some {
		if e.likely {
			if len(keys) == most {
				return i, keys
			}
			keys = append(keys, e.DeliveryKey)
		}
	}
	return len(some), keys
}

const (
	selectEventInfos = `SELECT f.position, e.type, e.object_type, e.object_id, e.created_at
		FROM unnest($1::bigint[]) AS u(position) JOIN surehook_feed f ON f.position = u.position JOIN surehook_events e ON e.no = f.event`
	selectAnswered = `SELECT u.event, u.subscription FROM unnest($1::bigint[], $2::bigint[]) AS u(event, subscription) CROSS JOIN LATERAL (
			SELECT class, status_code FROM surehook_attempts WHERE event = u.event AND subscription = u.subscription ORDER BY number DESC LIMIT 1) a
		WHERE ($3::text = '' OR a.class = $3) AND ($4::int = 0 OR a.status_code = $4)`
)

// unlikely marks entries whose event or last attempt does not match. That is cheaper to see
// than whether the whole delivery does.
func (w *work) unlikely(q *history.DeliveryQuery, some []entry) error {
	matching := map[int64]bool{}
	err := w.each(func(r rows) (bool, error) {
		var position int64
		var created timestamp
		var e sender.EventInfo
		err := r.Scan(&position, &e.Type, &e.Object.Type, &e.Object.ID, &created)
		e.CreatedAt = created.time()
		matching[position] = q.MatchesEvent(e)
		return true, err
	}, selectEventInfos, slices.Compact(column(some, func(e entry) int64 { return e.Event })))
	if err != nil {
		return err
	}
	for i := range some {
		some[i].likely = some[i].likely && matching[some[i].Event]
	}
	if q.Class == "" && q.StatusCode == 0 {
		return nil
	}
	_, likely := firstLikely(some, len(some))
	keys, err := w.keys(selectAnswered, column(likely, func(k dispatch.DeliveryKey) int64 { return k.Event }),
		column(likely, func(k dispatch.DeliveryKey) int64 { return k.Subscription }), string(q.Class), q.StatusCode)
	if err != nil {
		return err
	}
	answered := map[dispatch.DeliveryKey]bool{}
	for _, k := range keys {
		answered[k] = true
	}
	for i := range some {
		some[i].likely = some[i].likely && answered[some[i].DeliveryKey]
	}
	return nil
}

// scope returns the subject of a query. known is false if an id of it does not exist.
func (w *work) scope(q *history.DeliveryQuery) (sc scope, known bool, err error) {
	event := int64(0)
	for _, part := range []struct {
		id, query string
		no        *int64
	}{
		{q.Event, `SELECT f.position FROM surehook_events e JOIN surehook_feed f ON f.event = e.no WHERE e.id = $1`, &event},
		{q.Subscription, `SELECT no FROM surehook_subscriptions WHERE id = $1`, &sc.subscription},
		{q.Subscriber, selectOwner, &sc.subscriber},
	} {
		if part.id == "" {
			continue
		}
		if !storable(part.id) {
			return sc, false, nil
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
		sc.spans = []span{{event, event}}
		return sc, true, nil
	}
	sc.spans, err = w.spans(q.Since, q.Until)
	return sc, true, err
}

// selectOwner also finds a deleted subscriber.
const selectOwner = `SELECT no FROM surehook_subscribers WHERE id = $1`
