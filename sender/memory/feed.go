package memory

import (
	"bytes"
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

// Feed implements feed.Store. A position is an event's number: one transaction
// is open at a time.
func (s *Store) Feed(ctx context.Context, q feed.StoreQuery) (p feed.StorePage, err error) {
	if err := q.Check(); err != nil {
		return p, err
	}
	err = s.inTx(ctx, func(*Tx) error {
		if err := s.checkViewer(q.Viewer); err != nil {
			return err
		}
		p = feed.StorePage{Last: q.After, Head: s.last, Pruned: s.pruned}
		size := 0
		for examined, e := range s.events[s.after(q.After):] {
			if examined == history.MaxExamined || len(p.Events) == q.Limit {
				return nil
			}
			if e.seenBy(q.Viewer) {
				size += len(e.body)
				if q.Bytes > 0 && size > q.Bytes && len(p.Events) > 0 {
					return nil
				}
				stored := e.stored()
				if !q.Heads {
					stored.Body = bytes.Clone(e.body)
				}
				p.Events = append(p.Events, feed.Item{StoredEvent: stored, Position: e.no})
			}
			p.Last = e.no
		}
		p.Last = max(q.After, s.last) // the last ones may be pruned
		return nil
	})
	if err != nil {
		return feed.StorePage{}, err
	}
	return p, nil
}

func (s *Store) checkViewer(viewer string) error {
	if viewer == sender.Operator {
		return nil
	}
	_, err := s.findSubscriber(viewer)
	return err
}

func (e *event) seenBy(viewer string) bool {
	return viewer == sender.Operator || e.to.subscriber == "" || e.to.subscriber == viewer
}
