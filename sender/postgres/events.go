package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	storedEvent = `SELECT e.no, e.id, e.type, e.object_type, e.object_id, e.version, e.created_at, e.notice, e.url, coalesce(e.traceparent, ''), length(e.body) = 0, coalesce(o.id, ''), coalesce(s.id, '')`
	addressees  = ` LEFT JOIN surehook_subscribers o ON o.no = e.subscriber LEFT JOIN surehook_subscriptions s ON s.no = e.subscription`
	// selectEvents excludes by the time those events for which the bounds by number are too
	// wide.
	selectEvents = storedEvent + `, length(e.body) FROM (
			SELECT * FROM surehook_events WHERE no < $1 AND no >= $3 AND created_at >= $4 AND created_at <= $5 ORDER BY no DESC LIMIT $2) e` + addressees + ` ORDER BY e.no DESC`
	selectEvent = storedEvent + `, e.body FROM surehook_events e` + addressees + ` WHERE e.id = $1`
)

func scanEvent(r interface{ Scan(to ...any) error }, more ...any) (no int64, e sender.StoredEvent, err error) {
	var created timestamp
	err = r.Scan(append([]any{&no, &e.ID, &e.Type, &e.Object.Type, &e.Object.ID, &e.Version, &created, &e.Notice, &e.URL, &e.Traceparent, &e.Redacted, &e.Subscriber, &e.Subscription}, more...)...)
	e.CreatedAt = created.time()
	return no, e, err
}

// Event implements history.Store and feed.Store.
func (c *core) Event(ctx context.Context, id string) (e sender.StoredEvent, err error) {
	err = sql.ErrNoRows
	if storable(id) {
		err = c.read(ctx, func(w *work) (err error) {
			var body []byte
			_, e, err = scanEvent(w.row(selectEvent, id), &body)
			if !e.Redacted {
				e.Body = body
			}
			return err
		})
	}
	if errors.Is(err, sql.ErrNoRows) {
		return sender.StoredEvent{}, fmt.Errorf("%w: event %q", sender.ErrNotFound, id)
	}
	return e, fail("reading an event", err)
}

// Events implements history.Store.
func (c *core) Events(ctx context.Context, q history.EventQuery) (page []sender.StoredEvent, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	since, until := always, never
	if at := timestampOf(q.Since); at != none { // that of 1970 is, too
		since = at
	}
	if !q.Until.IsZero() {
		until = timestampOf(q.Until)
	}
	err = c.read(ctx, func(w *work) error {
		low, high, err := w.eventNumbers(q.Since, q.Until)
		if err != nil {
			return err
		}
		if high < math.MaxInt64 {
			before = min(before, high+1)
		}
		var listed []listedEvent
		listed, next, err = list(w, limit, before, func(e *listedEvent) bool { return q.Matches(e.EventInfo, e.Subscriber) },
			scanListed, selectEvents, low, since, until)
		if err == nil && q.Bytes > 0 {
			listed, next, err = w.withBodies(listed, next, int64(q.Bytes))
		}
		for i := range listed {
			page = append(page, listed[i].StoredEvent)
		}
		return err
	})
	if err != nil {
		return nil, "", fail("listing events", err)
	}
	return page, next, nil
}

// listedEvent is an event of a list.
type listedEvent struct {
	sender.StoredEvent
	no, size int64 // size is the length of its body
}

func scanListed(r rows) (no int64, e listedEvent, err error) {
	no, e.StoredEvent, err = scanEvent(r, &e.size)
	e.no = no
	return no, e, err
}

// withBodies reads the bodies of as many events of a page as a bound allows, and returns these
// and the cursor of the page that follows.
func (w *work) withBodies(page []listedEvent, next string, most int64) ([]listedEvent, string, error) {
	bound := rules.NewBytes(most)
	at := make(map[int64]*sender.StoredEvent, len(page))
	for i := range page {
		if !bound.Take(page[i].no, page[i].size) {
			page, next = page[:i], rules.NumberCursor(page[i-1].no)
			break
		}
		at[page[i].no] = &page[i].StoredEvent
	}
	return page, next, w.bodies(at)
}

// Subscriptions implements history.Store.
func (c *core) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	if q.Failing {
		return c.failing(ctx, q)
	}
	limit, after, err := rules.Number(q.Limit, q.Cursor, 0)
	if err != nil {
		return nil, "", err
	}
	err = c.read(ctx, func(w *work) error {
		owner := int64(0)
		if q.Subscriber != "" {
			err := sql.ErrNoRows
			if storable(q.Subscriber) {
				err = w.row(selectOwner, q.Subscriber).Scan(&owner)
			}
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if q.ID != "" {
			no, n, err := w.readSubscription(w.row(selectSubscription, soughtID(q.ID)))
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err == nil && no > after && rules.Listed(&q, n) {
				page = append(page, n)
			}
			return err
		}
		query, args := selectAnySubscription, []any{}
		if q.Subscriber != "" {
			query, args = selectSubscriptionsOf, []any{owner}
		}
		page, next, err = list(w, limit, after, func(n *sender.Subscription) bool { return rules.Listed(&q, *n) },
			func(r rows) (int64, sender.Subscription, error) { return w.readSubscription(r) }, query, args...)
		return err
	})
	if err != nil {
		return nil, "", fail("listing subscriptions", err)
	}
	return page, next, nil
}

// failing lists the subscriptions that fail, those that have failed for longest first.
func (c *core) failing(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	limit, since, after, err := rules.Failing(q.Limit, q.Cursor)
	if err != nil {
		return nil, "", err
	}
	err = c.read(ctx, func(w *work) error {
		from := always
		if q.Cursor != "" {
			from = timestampOf(time.UnixMicro(since))
		}
		examined := 0
		err := w.each(func(r rows) (bool, error) {
			no, n, err := w.readSubscription(r)
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
			since, after = n.Health.FailingSince.UnixMicro(), no
			examined++
			return true, nil
		}, selectFailing, from, after, history.MaxExamined)
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

// list reads a page of the rows that match, from a number on, more at a time with each
// read. The first two parameters of the query are the number and how many rows to read.
func list[T any](w *work, limit int, at int64, matches func(*T) bool, scan func(r rows) (int64, T, error), query string, args ...any) (page []T, next string, err error) {
	type numbered struct {
		no  int64
		row T
	}
	look := limit + 1
	for examined := 0; examined < history.MaxExamined; look = min(2*look, lookMax) {
		look = min(look, history.MaxExamined-examined)
		var some []numbered
		err := w.each(func(r rows) (bool, error) {
			no, row, err := scan(r)
			some = append(some, numbered{no, row})
			return true, err
		}, query, append([]any{at, look}, args...)...)
		if err != nil {
			return nil, "", err
		}
		for i := range some {
			n := &some[i]
			if matches(&n.row) {
				if len(page) == limit {
					return page, rules.NumberCursor(at), nil
				}
				page = append(page, n.row)
			}
			at = n.no
		}
		if len(some) < look {
			return page, "", nil
		}
		examined += look
	}
	return page, rules.NumberCursor(at), nil
}
