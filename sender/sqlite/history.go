package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
)

// Bounds of a page of deliveries.
const (
	pageDefault = 50
	pageMax     = 200
)

// Delivery implements sender.HistoryStore.
func (s *Store) Delivery(ctx context.Context, id string) (out sender.Delivery, err error) {
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
		if out.Attempts, err = w.attempts(k); err != nil {
			return err
		}
		if out.Redacted {
			return nil
		}
		return w.row(`SELECT body FROM surehook_events WHERE seq = ?`, k.Event).Scan(&out.Body)
	})
	return out, aboutDelivery(id, err)
}

func aboutDelivery(id string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
	}
	return fail("reading a delivery", err)
}

// Deliveries implements sender.HistoryStore: by event, newest first, then by
// subscription, oldest first.
func (s *Store) Deliveries(ctx context.Context, q sender.DeliveryQuery) (page []sender.Delivery, next string, err error) {
	limit := cmp.Or(q.Limit, pageDefault)
	if limit < 1 || limit > pageMax {
		return nil, "", fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, q.Limit, pageMax)
	}
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		filter, known, err := w.filter(q)
		if err != nil || !known {
			return err
		}
		now := s.now()
		for {
			keys, err := w.candidates(q.Status, filter, after, limit+1)
			if err != nil {
				return err
			}
			for _, k := range keys {
				d, err := w.delivery(k, now)
				if err != nil && !errors.Is(err, errNoDelivery) {
					return err
				}
				if err == nil && (q.Status == "" || d.Status == q.Status) {
					if len(page) == limit {
						next = cursor(after)
						return nil
					}
					page = append(page, d.Delivery)
				}
				after = k
			}
			if len(keys) <= limit {
				return nil
			}
		}
	})
	if err != nil {
		return nil, "", fail("listing deliveries", err)
	}
	return page, next, nil
}

// filter is the part of a query that names one event or one subscription, in
// numbers; 0: any. known is false if there is none of that id.
type filter struct{ event, subscription int64 }

func (w *work) filter(q sender.DeliveryQuery) (f filter, known bool, err error) {
	for _, part := range []struct {
		id, query string
		no        *int64
	}{
		{q.Event, `SELECT seq FROM surehook_events WHERE id = ?`, &f.event},
		{q.Subscription, `SELECT no FROM surehook_subscriptions WHERE id = ?`, &f.subscription},
	} {
		if part.id == "" {
			continue
		}
		err := w.row(part.query, part.id).Scan(part.no)
		if errors.Is(err, sql.ErrNoRows) {
			return f, false, nil
		}
		if err != nil {
			return f, false, err
		}
	}
	return f, true, nil
}

// A source is where deliveries of a status may be. What is found there may have
// another one.
type source struct {
	table string
	where string
	// bySubscription: the table is ordered by subscription. So that the cost does
	// not grow with the backlog, the first of each subscription are compared.
	bySubscription bool
}

var (
	pending   = source{table: "surehook_pending", bySubscription: true}
	waiting   = source{table: "surehook_waiting", bySubscription: true}
	leased    = source{table: "surehook_leases"} // as many as there are attempts in flight
	dead      = source{table: "surehook_ended", where: "x.status = 'dead_lettered'"}
	cancelled = source{table: "surehook_ended", where: "x.status = 'cancelled'"}
	// A delivery that is sent again can succeed twice.
	succeeded = source{table: "surehook_attempts", where: `x.class = '' AND NOT EXISTS (SELECT 1 FROM surehook_attempts y
		WHERE y.event = x.event AND y.subscription = x.subscription AND y.class = '' AND y.number < x.number)`}
)

var sources = map[sender.Status][]source{
	"":                         {pending, waiting, leased, dead, cancelled, succeeded},
	sender.StatusPending:       {pending, waiting, leased},
	sender.StatusAwaitingRetry: {waiting, leased},
	sender.StatusHeld:          {pending, waiting, leased},
	sender.StatusDeadLettered:  {dead},
	sender.StatusCancelled:     {cancelled, pending, waiting, leased}, // live ones of deleted subscriptions too
	sender.StatusDelivered:     {succeeded},
}

// candidates are the first n deliveries after one that may be of a status.
func (w *work) candidates(status sender.Status, f filter, after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
	for _, source := range sources[status] {
		query, args := source.page(f, after, n)
		err := w.each(func(rows *sql.Rows) (bool, error) {
			var k sender.DeliveryKey
			err := rows.Scan(&k.Event, &k.Subscription)
			keys = append(keys, k)
			return true, err
		}, query, args...)
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(keys, func(a, b sender.DeliveryKey) int {
		return cmp.Or(cmp.Compare(b.Event, a.Event), cmp.Compare(a.Subscription, b.Subscription))
	})
	keys = slices.Compact(keys)
	return keys[:min(n, len(keys))], nil
}

func (s source) page(f filter, after sender.DeliveryKey, n int) (query string, args []any) {
	where := ` WHERE x.event <= ? AND (x.event < ? OR x.subscription > ?)`
	args = []any{after.Event, after.Event, after.Subscription}
	if s.where != "" {
		where += ` AND ` + s.where
	}
	if f.event != 0 {
		where, args = where+` AND x.event = ?`, append(args, f.event)
	}
	if s.bySubscription && f.subscription == 0 {
		return `SELECT y.event, y.subscription FROM surehook_subscriptions s CROSS JOIN ` + s.table + ` y ON y.subscription = s.no
			WHERE s.status <> 'swept' AND y.event IN (SELECT x.event FROM ` + s.table + ` x` + where + ` AND x.subscription = s.no
				ORDER BY x.event DESC LIMIT ?)
			ORDER BY y.event DESC, y.subscription LIMIT ?`, append(args, n, n)
	}
	if f.subscription != 0 {
		where, args = where+` AND x.subscription = ?`, append(args, f.subscription)
	}
	return `SELECT x.event, x.subscription FROM ` + s.table + ` x` + where + ` ORDER BY x.event DESC, x.subscription LIMIT ?`, append(args, n)
}

var cursors = base64.RawURLEncoding.Strict()

func cursor(k sender.DeliveryKey) string {
	return cursors.EncodeToString(fmt.Appendf(nil, "%d.%d", k.Event, k.Subscription))
}

// parseCursor returns the key that a page follows.
func parseCursor(text string) (k sender.DeliveryKey, err error) {
	if text == "" {
		return sender.DeliveryKey{Event: math.MaxInt64}, nil
	}
	b, err := cursors.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d.%d", &k.Event, &k.Subscription)
	}
	if err != nil || k.Event < 1 || k.Subscription < 1 || fmt.Sprintf("%d.%d", k.Event, k.Subscription) != string(b) {
		return k, fmt.Errorf("%w cursor: it must be one that a page before came with", sender.ErrInvalid)
	}
	return k, nil
}
