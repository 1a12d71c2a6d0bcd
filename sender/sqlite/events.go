package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	storedEvent = `SELECT e.seq, e.id, e.type, e.object_type, e.object_id, e.version, e.created_at, e.notice, e.url, coalesce(e.traceparent, ''), length(e.body) = 0,
			coalesce((SELECT id FROM surehook_subscribers WHERE no = e.subscriber), ''),
			coalesce((SELECT id FROM surehook_subscriptions WHERE no = e.subscription), '')`
	selectEvents = storedEvent + `, length(e.body) FROM surehook_events e WHERE e.seq >= ? AND e.seq < ? ORDER BY e.seq DESC LIMIT ?`
	selectEvent  = storedEvent + `, e.body FROM surehook_events e WHERE e.id = ?`
)

func scanEvent(rows interface{ Scan(...any) error }, more ...any) (seq int64, e sender.StoredEvent, err error) {
	var created int64
	err = rows.Scan(append([]any{&seq, &e.ID, &e.Type, &e.Object.Type, &e.Object.ID, &e.Version, &created, &e.Notice, &e.URL, &e.Traceparent, &e.Redacted, &e.Subscriber, &e.Subscription}, more...)...)
	e.CreatedAt = timeOf(created)
	return seq, e, err
}

// Event implements history.Store and feed.Store.
func (s *Store) Event(ctx context.Context, id string) (e sender.StoredEvent, err error) {
	err = s.read(ctx, func(w *work) error {
		var body []byte
		_, e, err = scanEvent(w.row(selectEvent, id), &body)
		if !e.Redacted {
			e.Body = body
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return sender.StoredEvent{}, fmt.Errorf("%w: event %q", sender.ErrNotFound, id)
	}
	return e, fail("reading an event", err)
}

// Events implements history.Store.
func (s *Store) Events(ctx context.Context, q history.EventQuery) (page []sender.StoredEvent, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		low, high, err := w.between(q.Since, q.Until)
		if err != nil {
			return err
		}
		if high < math.MaxInt64 {
			before = min(before, high+1)
		}
		examined := 0
		var numbers []int64 // of the page
		bound := rules.NewBytes(int64(q.Bytes))
		err = w.each(func(rows *sql.Rows) (bool, error) {
			var size int64
			seq, e, err := scanEvent(rows, &size)
			if err != nil {
				return false, err
			}
			if q.Matches(e.EventInfo, e.Subscriber) {
				if len(page) == limit || !bound.Take(seq, size) {
					next = rules.NumberCursor(before)
					return false, nil
				}
				page, numbers = append(page, e), append(numbers, seq)
			}
			before = seq
			examined++
			return true, nil
		}, selectEvents, low, before, history.MaxExamined)
		if examined == history.MaxExamined {
			next = rules.NumberCursor(before)
		}
		if err != nil || q.Bytes == 0 {
			return err
		}
		return w.withBodies(page, numbers)
	})
	if err != nil {
		return nil, "", fail("listing events", err)
	}
	return page, next, nil
}

// withBodies reads the bodies of events, which have these numbers.
func (w *work) withBodies(events []sender.StoredEvent, numbers []int64) error {
	for i, seq := range numbers {
		if e := &events[i]; !e.Redacted {
			if err := w.row(selectEventBody, seq).Scan(&e.Body); err != nil {
				return err
			}
		}
	}
	return nil
}

// Subscriptions implements history.Store.
func (s *Store) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	if q.Failing {
		return s.failing(ctx, q)
	}
	limit, after, err := rules.Number(q.Limit, q.Cursor, 0)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		query, args := selectSubscriptions, []any{}
		if q.Subscriber != "" {
			var owner int64
			err := w.row(selectOwner, q.Subscriber).Scan(&owner)
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			query, args = query+` AND s.subscriber = ?`, append(args, owner)
		}
		if q.ID != "" {
			query, args = query+` AND s.id = ?`, append(args, q.ID)
		}
		examined := 0
		err := w.each(func(rows *sql.Rows) (bool, error) {
			no, n, err := w.readSubscription(rows)
			if err != nil {
				return false, err
			}
			if rules.Listed(&q, n) {
				if len(page) == limit {
					next = rules.NumberCursor(after)
					return false, nil
				}
				page = append(page, n)
			}
			after = no
			examined++
			return true, nil
		}, query+` AND s.no > ? ORDER BY s.no LIMIT ?`, append(args, after, history.MaxExamined)...)
		if examined == history.MaxExamined {
			next = rules.NumberCursor(after)
		}
		return err
	})
	if err != nil {
		return nil, "", fail("listing subscriptions", err)
	}
	return page, next, nil
}

// failing lists the subscriptions that fail, those that have failed for longest first.
func (s *Store) failing(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	limit, since, after, err := rules.Failing(q.Limit, q.Cursor)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		examined := 0
		err := w.each(func(rows *sql.Rows) (bool, error) {
			no, n, err := w.readSubscription(rows)
			if err != nil {
				return false, err
			}
			if rules.Listed(&q, n) {
				if len(page) == limit {
					next = rules.FailingCursor(since, after)
					return false, nil
				}
				page = append(page, n)
			}
			since, after = micros(n.Health.FailingSince), no
			examined++
			return true, nil
		}, selectFailing, since, after, history.MaxExamined)
		if examined == history.MaxExamined {
			next = rules.FailingCursor(since, after)
		}
		return err
	})
	if err != nil {
		return nil, "", fail("listing failing subscriptions", err)
	}
	return page, next, nil
}
