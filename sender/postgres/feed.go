package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

const (
	selectFeedEnds = `SELECT h.position, p.position FROM surehook_feed_head h CROSS JOIN surehook_feed_pruned p`

	feedEvent = storedEvent + `, f.position, length(e.body)`
	// selectFeed reads the events behind a position. selectFeedOf reads, of the next $2
	// events, those that the subscriber with the number $4 may see.
	selectFeed   = feedEvent + ` FROM surehook_feed f JOIN surehook_events e ON e.no = f.event` + addressees + ` WHERE f.position > $1 ORDER BY f.position LIMIT $2`
	selectFeedOf = feedEvent + ` FROM (SELECT position, event FROM surehook_feed WHERE position > $1 ORDER BY position LIMIT $2) f
		JOIN surehook_events e ON e.no = f.event` + addressees + ` WHERE e.subscriber IN (0, $4) ORDER BY f.position LIMIT $3`
	// selectFeedLooked counts the next $2 events, and returns the last of their positions.
	selectFeedLooked = `SELECT count(*), coalesce(max(position), 0) FROM (SELECT position FROM surehook_feed WHERE position > $1 ORDER BY position LIMIT $2) f`
	selectBodies     = `SELECT no, body FROM surehook_events WHERE no = ANY($1)`
)

// Feed implements feed.Store. An event gets its position when it is expanded, after
// its commit, by one expander at a time. So a dispatcher must run, in any process.
func (c *core) Feed(ctx context.Context, q feed.StoreQuery) (p feed.StorePage, err error) {
	if err := q.Check(); err != nil {
		return p, err
	}
	err = c.read(ctx, func(w *work) error {
		viewer, err := w.viewer(q.Viewer)
		if err != nil {
			return err
		}
		if err := w.row(selectFeedEnds).Scan(&p.Head, &p.Pruned); err != nil {
			return err
		}
		return w.feed(&q, viewer, &p)
	})
	if err != nil {
		return feed.StorePage{}, aboutFeed("reading the feed", err)
	}
	return p, nil
}

// feed reads the events of a page without their bodies, and then the bodies of those that
// fit. A body that is not wanted would have to be read to its end.
func (w *work) feed(q *feed.StoreQuery, viewer *int64, p *feed.StorePage) error {
	query, args, look := selectFeed, []any{q.After, q.Limit}, q.Limit
	if viewer != nil {
		look = history.MaxExamined
		query, args = selectFeedOf, []any{q.After, look, q.Limit, *viewer}
	}
	var numbers []int64
	size, whole := 0, true
	err := w.each(func(r rows) (bool, error) {
		var position int64
		var length int
		no, e, err := scanEvent(r, &position, &length)
		if err != nil {
			return false, err
		}
		if size += length; q.Bytes > 0 && size > q.Bytes && len(p.Events) > 0 {
			whole = false
			return false, nil
		}
		p.Events = append(p.Events, feed.Item{StoredEvent: e, Position: position})
		numbers = append(numbers, no)
		return true, nil
	}, query, args...)
	if err != nil {
		return err
	}
	if p.Last, err = w.looked(q, p, whole, look); err != nil || q.Heads {
		return err
	}
	at := make(map[int64]*sender.StoredEvent, len(numbers))
	for i, no := range numbers {
		at[no] = &p.Events[i].StoredEvent
	}
	return w.bodies(at)
}

// looked returns the position up to which a page that has its events has looked.
func (w *work) looked(q *feed.StoreQuery, p *feed.StorePage, whole bool, look int) (int64, error) {
	if n := len(p.Events); n > 0 && (!whole || n == q.Limit) {
		return p.Events[n-1].Position, nil
	}
	examined, last := 0, int64(0)
	if look > q.Limit {
		if err := w.row(selectFeedLooked, q.After, look).Scan(&examined, &last); err != nil {
			return 0, err
		}
	}
	if examined == look {
		return last, nil
	}
	return max(q.After, p.Head), nil // the last ones may be pruned
}

// bodies reads the bodies of events, by their numbers.
func (w *work) bodies(at map[int64]*sender.StoredEvent) error {
	if len(at) == 0 {
		return nil
	}
	return w.each(func(r rows) (bool, error) {
		var no int64
		var body []byte
		err := r.Scan(&no, &body)
		if e := at[no]; err == nil && e != nil && !e.Redacted {
			e.Body = body
		}
		return true, err
	}, selectBodies, slices.Sorted(maps.Keys(at)))
}

// viewer returns the number of the subscriber who reads, or nil for the operator, who sees
// all.
func (w *work) viewer(id string) (*int64, error) {
	if id == sender.Operator {
		return nil, nil
	}
	var no int64
	err := sql.ErrNoRows
	if storable(id) {
		err = w.row(selectSubscriberNo, id).Scan(&no)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return &no, err
}

func aboutFeed(doing string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return err
	}
	return fail(doing, err)
}
