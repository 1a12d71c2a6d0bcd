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

// Where deliveries of a status are. What is found there may have another one by
// now.
const (
	fromPending  = `SELECT event, subscription FROM surehook_deliveries WHERE attempted = 0`
	fromAwaiting = `SELECT event, subscription FROM surehook_deliveries WHERE attempted = 1`
	fromGone     = `SELECT event, subscription FROM surehook_deliveries
		WHERE subscription IN (SELECT no FROM surehook_subscriptions WHERE state = 1)`
	fromDead      = `SELECT event, subscription FROM surehook_ended WHERE status = 'dead_lettered'`
	fromCancelled = `SELECT event, subscription FROM surehook_ended WHERE status = 'cancelled'`
	fromAttempts  = `SELECT DISTINCT event, subscription FROM surehook_attempts WHERE class = ''`
)

var sources = map[sender.Status][]string{
	"":                         {fromPending, fromAwaiting, fromDead, fromCancelled, fromAttempts},
	sender.StatusPending:       {fromPending},
	sender.StatusAwaitingRetry: {fromAwaiting},
	sender.StatusDeadLettered:  {fromDead},
	sender.StatusCancelled:     {fromCancelled, fromGone},
	sender.StatusDelivered:     {fromAttempts},
}

// candidates are the first n deliveries after one that may be of a status.
func (w *work) candidates(status sender.Status, f filter, after sender.DeliveryKey, n int) (keys []sender.DeliveryKey, err error) {
	for _, source := range sources[status] {
		query, args := page(source, f, after, n)
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

func page(source string, f filter, after sender.DeliveryKey, n int) (query string, args []any) {
	query = source + ` AND event <= ? AND (event < ? OR subscription > ?)`
	args = []any{after.Event, after.Event, after.Subscription}
	if f.event != 0 {
		query, args = query+` AND event = ?`, append(args, f.event)
	}
	if f.subscription != 0 {
		query, args = query+` AND subscription = ?`, append(args, f.subscription)
	}
	return query + ` ORDER BY event DESC, subscription LIMIT ?`, append(args, n)
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
