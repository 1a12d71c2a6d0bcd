package feed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/surehook/surehook/sender"
)

// Bounds of a query.
const (
	DefaultLimit = 50
	MaxLimit     = MaxPage
	MaxWait      = 30 * time.Second
)

// Now as [Query.After] begins with what comes: the page has the cursor behind the last
// event that there is, and no event unless one comes within the wait.
const Now = "now"

// ReaderConfig adjusts a Reader. A nil config and zero fields mean the defaults.
type ReaderConfig struct {
	// Poll is the time between two looks for new events while somebody waits for
	// some. One look serves all who wait. Defaults to 100 ms.
	Poll time.Duration

	// PageBytes bounds the bodies of a page together. A larger event comes alone.
	// Defaults to 4 MiB.
	PageBytes int

	// Reads is how many queries run at a time. The others wait, so that an event
	// for everybody does not take all of the database's connections. Defaults to 4.
	Reads int
}

// Reader reads the feed. It is safe for concurrent use, and runs no goroutine while
// nobody waits.
type Reader struct {
	store Store
	cfg   ReaderConfig
	reads *semaphore.Weighted
	tail  tail
}

// NewReader returns a Reader on a store. All problems are reported at once.
func NewReader(store Store, cfg *ReaderConfig) (*Reader, error) {
	r := &Reader{store: store, cfg: ReaderConfig{Poll: 100 * time.Millisecond, PageBytes: 4 << 20, Reads: 4}}
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("feed: NewReader needs a store"))
	}
	if cfg != nil {
		if cfg.Poll < 0 || cfg.PageBytes < 0 || cfg.Reads < 0 {
			errs = append(errs, fmt.Errorf("feed: Poll %v, PageBytes %d, Reads %d: none of them may be negative", cfg.Poll, cfg.PageBytes, cfg.Reads))
		}
		if cfg.Poll > 0 {
			r.cfg.Poll = cfg.Poll
		}
		if cfg.PageBytes > 0 {
			r.cfg.PageBytes = cfg.PageBytes
		}
		if cfg.Reads > 0 {
			r.cfg.Reads = cfg.Reads
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r.reads = semaphore.NewWeighted(int64(r.cfg.Reads))
	r.tail.init(r)
	return r, nil
}

// Query asks for a page.
type Query struct {
	// Viewer is the id of the subscriber who reads. Subscribers see the events that
	// are addressed to them, or to nobody in particular. sender.Operator sees all.
	Viewer string
	// After is Page.Next of the page before. Empty: begin with the oldest event
	// that is kept. Now: begin with what comes.
	After string
	Limit int // 1 to 200; 0 means 50
	// Wait is how long an empty page is held open: up to 30 s.
	Wait time.Duration
}

// Page is a part of the feed.
type Page struct {
	// Events are those after the cursor, in the order in which they became visible.
	// It is empty if the viewer may see no event there.
	Events []sender.StoredEvent
	// Next is the cursor to go on with. It is never empty.
	Next string
}

// Page returns the events that follow a cursor, up to Query.Limit of them and up to
// ReaderConfig.PageBytes of bodies. If there are none it waits for some, for up to
// Query.Wait. When ctx ends meanwhile, or the Reader is drained, the page is empty
// and the error nil.
//
// It returns sender.ErrInvalid if the viewer is empty, or if the cursor, the limit or
// the wait is not valid; in the latter cases the error is an *InvalidError. It returns
// sender.ErrNotFound if there is no such viewer, and an *ExpiredError, which matches
// ErrExpired, if events after the cursor are gone.
func (r *Reader) Page(ctx context.Context, q Query) (Page, error) {
	at, err := q.check()
	if err != nil {
		return Page{}, err
	}
	deadline := time.Now().Add(q.Wait)
	if q.After == Now {
		if at, err = r.end(ctx, q.Viewer); err != nil {
			return Page{}, err
		}
	}
	for first := true; ; first = false {
		page, err := r.read(ctx, &q, &at, first && q.After == "")
		if err != nil || len(page.Events) > 0 {
			return page, err
		}
		// An event that commits between the query and the wait is not missed:
		// the tail knows how far it has looked.
		if !r.tail.wait(ctx, q.Viewer, &at.position, time.Until(deadline)) {
			return Page{Next: at.text()}, nil
		}
	}
}

// end returns the cursor behind the last event.
func (r *Reader) end(ctx context.Context, viewer string) (cursor, error) {
	// A page after all that there can be reads no event.
	got, err := r.take(ctx, StoreQuery{Viewer: viewer, After: math.MaxInt64, Limit: 1, Heads: true})
	return cursor{position: got.Head, pruned: got.Pruned}, err
}

// read reads until it finds an event or reaches the end. It moves the cursor past the
// events that it has looked at.
func (r *Reader) read(ctx context.Context, q *Query, at *cursor, begins bool) (Page, error) {
	for {
		got, err := r.take(ctx, StoreQuery{Viewer: q.Viewer, After: at.position, Limit: q.Limit, Bytes: r.cfg.PageBytes})
		if err != nil {
			return Page{}, err
		}
		switch {
		case begins:
			at.pruned = got.Pruned
			begins = false
		case at.position > got.Head:
			return Page{}, &ExpiredError{Next: cursor{pruned: got.Pruned}.text(), Ahead: true}
		case got.Pruned > at.position && got.Pruned > at.pruned:
			return Page{}, &ExpiredError{Next: cursor{position: at.position, pruned: got.Pruned}.text()}
		}
		at.position = got.Last
		if len(got.Events) > 0 {
			page := Page{Events: make([]sender.StoredEvent, len(got.Events)), Next: at.text()}
			for i := range got.Events {
				page.Events[i] = got.Events[i].StoredEvent
			}
			return page, nil
		}
		if got.Last >= got.Head {
			return Page{Next: at.text()}, nil
		}
	}
}

// take lets others query between the queries of one page, so that a reader who has far
// to look does not keep them out.
func (r *Reader) take(ctx context.Context, q StoreQuery) (StorePage, error) {
	if err := r.turn(ctx); err != nil {
		return StorePage{}, err
	}
	defer r.reads.Release(1)
	return r.store.Feed(ctx, q)
}

// turn waits until one more may read.
func (r *Reader) turn(ctx context.Context) error {
	if err := r.reads.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("feed: waiting for a turn to read: %w", err)
	}
	return nil
}

// Event returns an event with its body if the viewer may see it, and else
// sender.ErrNotFound. An empty viewer is sender.ErrInvalid.
func (r *Reader) Event(ctx context.Context, viewer, id string) (sender.StoredEvent, error) {
	if err := r.turn(ctx); err != nil {
		return sender.StoredEvent{}, err
	}
	defer r.reads.Release(1)
	// A page after all that there can be reads no event. It shows that the viewer is there.
	if _, err := r.store.Feed(ctx, StoreQuery{Viewer: viewer, After: math.MaxInt64, Limit: 1, Heads: true}); err != nil {
		return sender.StoredEvent{}, err
	}
	e, err := r.store.Event(ctx, id)
	if err == nil && viewer != sender.Operator && e.Subscriber != "" && e.Subscriber != viewer {
		return sender.StoredEvent{}, fmt.Errorf("%w: event %q", sender.ErrNotFound, id)
	}
	return e, err
}

// Drain ends all waits with empty pages, and from then on nobody waits. The clients
// come back with the cursors that they got, to another process or after the restart. It
// is for http.Server.RegisterOnShutdown. To call it again is harmless.
func (r *Reader) Drain() { r.tail.drain() }

// check fills in the defaults.
func (q *Query) check() (at cursor, err error) {
	var errs []error
	if err := CheckViewer(q.Viewer); err != nil {
		errs = append(errs, err)
	}
	if q.After != "" && q.After != Now {
		if at, err = parseCursor(q.After); err != nil {
			errs = append(errs, &InvalidError{"after", err})
		}
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		errs = append(errs, &InvalidError{"limit", fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, q.Limit, MaxLimit)})
	}
	if q.Wait < 0 || q.Wait > MaxWait {
		errs = append(errs, &InvalidError{"wait", fmt.Errorf("%w wait of %v: it must be from 0 to %v", sender.ErrInvalid, q.Wait, MaxWait)})
	}
	return at, errors.Join(errs...)
}

// InvalidError tells which field of a Query is not valid, by its name as a parameter of
// a URL: after, limit, wait.
type InvalidError struct {
	Parameter string
	Err       error
}

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }
