package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

const (
	selectFeedEnds = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'surehook_events'), 0), event FROM surehook_feed_pruned`
	// seen tells whether the viewer with a number may see an event. The viewer NULL sees
	// all.
	seen = `(?1 IS NULL OR e.subscriber IN (0, ?1))`
	// selectFeed reads no body of an event that the viewer may not see.
	selectFeed = storedEvent + `, length(e.body), CASE WHEN ` + seen + ` AND ?4 THEN e.body END, ` + seen + `
		FROM surehook_events e WHERE e.seq > ?2 ORDER BY e.seq LIMIT ?3 + 0`
)

// Feed implements feed.Store. A position is an event's seq: there is one writer,
// and a number that a roll-back gives back was never seen.
func (s *Store) Feed(ctx context.Context, q feed.StoreQuery) (p feed.StorePage, err error) {
	if err := q.Check(); err != nil {
		return p, err
	}
	err = s.read(ctx, func(w *work) error {
		viewer, err := w.viewer(q.Viewer)
		if err != nil {
			return err
		}
		if err := w.row(selectFeedEnds).Scan(&p.Head, &p.Pruned); err != nil {
			return err
		}
		p.Last = q.After
		look, examined, size, whole := history.MaxExamined, 0, 0, true
		if viewer == nil {
			look = q.Limit
		}
		err = w.each(func(rows *sql.Rows) (bool, error) {
			if len(p.Events) == q.Limit {
				whole = false
				return false, nil
			}
			var length int
			var body []byte
			var visible bool
			position, e, err := scanEvent(rows, &length, &body, &visible)
			if err != nil {
				return false, err
			}
			if visible {
				if size += length; q.Bytes > 0 && size > q.Bytes && len(p.Events) > 0 {
					whole = false
					return false, nil
				}
				if !e.Redacted {
					e.Body = body
				}
				p.Events = append(p.Events, feed.Item{StoredEvent: e, Position: position})
			}
			p.Last = position
			examined++
			return true, nil
		}, selectFeed, viewer, q.After, look, !q.Heads)
		if whole && examined < look {
			p.Last = max(q.After, p.Head) // the last ones may be pruned
		}
		return err
	})
	if err != nil {
		return feed.StorePage{}, aboutFeed("reading the feed", err)
	}
	return p, nil
}

// viewer returns the number of the subscriber who reads, or nil for the operator, who
// sees all.
func (w *work) viewer(id string) (no any, err error) {
	if id == sender.Operator {
		return nil, nil
	}
	var n int64
	if err := w.row(selectSubscriberNo, id).Scan(&n); errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	} else if err != nil {
		return nil, err
	}
	return n, nil
}

func aboutFeed(doing string, err error) error {
	if errors.Is(err, sender.ErrNotFound) {
		return err
	}
	return fail(doing, err)
}
