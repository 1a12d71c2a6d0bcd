package feed

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Store reads the events in the order in which they became visible. Package
// feed uses it.
//
// In that order each event has a position, from 1. Positions are given after the commit,
// or while nobody else can commit. Once a call has looked at a position, no event ever
// appears at it or below it, in whatever order transactions began, wrote or committed. So
// whoever goes on after the last position that they have read misses nothing. A position
// is never given twice.
type Store interface {
	// Feed returns events that q.Viewer may see, the lowest position first, and how
	// far it has looked. All that it returns is of one snapshot. It looks at up to
	// about history.MaxExamined events, so a page can be short, or empty, before the end:
	// the end is StorePage.Last = StorePage.Head, never a short page. ErrNotFound:
	// there is no such subscriber, or it was deleted; ErrInvalid: an empty viewer, a
	// negative position, or a limit that is not from 1 to 200.
	Feed(ctx context.Context, q StoreQuery) (StorePage, error)

	// Event returns an event with its body and its addressees, or ErrNotFound, as
	// history.Store does. It knows no viewer.
	Event(ctx context.Context, id string) (sender.StoredEvent, error)
}

// StoreQuery asks for a part of the feed.
type StoreQuery struct {
	// Viewer is the id of the subscriber who reads: they see the events that are
	// addressed to them, or to nobody in particular. Operator sees all.
	Viewer string
	After  int64 // a position; 0: from the oldest event that is kept
	Limit  int   // 1 to 200
	// Bytes ends a page before the event whose body would make the bodies longer
	// than this together. The first event comes whatever its size. 0: no bound.
	Bytes int
	// Heads leaves the bodies out.
	Heads bool
}

// Item is an event with its position.
type Item struct {
	sender.StoredEvent
	Position int64
}

// StorePage is a part of the feed.
type StorePage struct {
	Events []Item
	// Last is how far was looked: of what is up to it, and after StoreQuery.After, the
	// viewer may see Events and nothing else. It is at least StoreQuery.After.
	Last int64
	// Head is the last position that was given; 0: none was.
	Head int64
	// Pruned is the highest position of an event that was pruned; 0: none was. Below
	// it there can be events that are kept.
	Pruned int64
}

// MaxPage is the most that StoreQuery.Limit may be.
const MaxPage = 200

// Check refuses a query that is not of the form that is asked for. Stores call it.
func (q *StoreQuery) Check() error {
	if err := CheckViewer(q.Viewer); err != nil {
		return err
	}
	switch {
	case q.After < 0:
		return fmt.Errorf("%w position %d: it must be one that a page came with, or 0", sender.ErrInvalid, q.After)
	case q.Limit < 1 || q.Limit > MaxPage:
		return fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, q.Limit, MaxPage)
	}
	return nil
}

// CheckViewer refuses the empty viewer, so that a caller whose id was forgotten does
// not pass for one who sees all.
func CheckViewer(viewer string) error {
	if viewer == "" {
		return fmt.Errorf("%w viewer: it is empty; give a subscriber's id, or %q for all", sender.ErrInvalid, sender.Operator)
	}
	return nil
}
