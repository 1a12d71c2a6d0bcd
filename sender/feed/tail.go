package feed

import (
	"context"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

// tail has the readers who wait for new events. While somebody waits, one goroutine
// asks the store for new events, without their bodies, and wakes the readers who may
// see them. They then read for themselves.
type tail struct {
	store Store
	poll  time.Duration

	mu      sync.Mutex
	watch   *watch // nil: nobody waits
	drained chan struct{}
}

// watch is from when somebody begins to wait until nobody does.
type watch struct {
	at      int64 // how far it has looked
	waiting map[string]map[*waiter]struct{}
	end     context.CancelFunc
}

// waiter is one call that waits. To take it out of the watch is to close its channel,
// once.
type waiter chan struct{}

func (t *tail) init(r *Reader) {
	t.store, t.poll, t.drained = r.store, r.cfg.Poll, make(chan struct{})
}

// wait returns true if the viewer should read after a position: there is an event, or
// there may be one. It returns false after it has moved the position on to where there
// is none.
func (t *tail) wait(ctx context.Context, viewer string, position *int64, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	w := make(waiter)
	again, entered := t.enter(viewer, &w, *position)
	if !entered {
		return again
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w:
	case <-timer.C:
	case <-ctx.Done():
	case <-t.drained:
	}
	return t.leave(viewer, &w, position) && ctx.Err() == nil
}

// enter begins to wait. If it cannot, it returns false and whether to read again: the
// watch may have passed events after the position.
func (t *tail) enter(viewer string, w *waiter, position int64) (again, entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.drained:
		return false, false
	default:
	}
	if t.watch == nil {
		ctx, cancel := context.WithCancel(context.Background())
		t.watch = &watch{at: position, waiting: map[string]map[*waiter]struct{}{}, end: cancel}
		go t.run(ctx, t.watch)
	} else if t.watch.at > position {
		return true, false
	}
	if t.watch.waiting[viewer] == nil {
		t.watch.waiting[viewer] = map[*waiter]struct{}{}
	}
	t.watch.waiting[viewer][w] = struct{}{}
	return false, true
}

// leave returns whether the waiter was woken. The last one ends the watch.
func (t *tail) leave(viewer string, w *waiter, position *int64) (woken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-*w:
		return true // wake has taken it out
	default:
	}
	*position = max(*position, t.watch.at)
	delete(t.watch.waiting[viewer], w)
	t.watch.left(t, viewer)
	return false
}

// left forgets a viewer for whom nobody waits, and ends the watch once nobody waits at
// all.
func (w *watch) left(t *tail, viewer string) {
	if len(w.waiting[viewer]) == 0 {
		delete(w.waiting, viewer)
	}
	if len(w.waiting) == 0 {
		w.end()
		t.watch = nil
	}
}

// wake wakes all who wait as a viewer.
func (w *watch) wake(t *tail, viewer string) {
	all, some := w.waiting[viewer]
	if !some {
		return
	}
	for one := range all {
		close(*one)
	}
	clear(all)
	w.left(t, viewer)
}

func (w *watch) wakeAll(t *tail) {
	for viewer := range w.waiting {
		w.wake(t, viewer)
	}
}

func (t *tail) run(ctx context.Context, w *watch) {
	tick := time.NewTicker(t.poll)
	defer tick.Stop()
	for at := w.at; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for more := true; more; {
			page, err := t.store.Feed(ctx, StoreQuery{Viewer: sender.Operator, After: at, Limit: MaxLimit, Heads: true})
			if !t.tell(w, page, err) {
				return
			}
			more = err == nil && page.Last < page.Head
			at = max(at, page.Last)
		}
	}
}

// tell wakes the viewers who have something to read, and returns false once nobody
// waits. After an error it wakes all: they read for themselves and get the error.
func (t *tail) tell(w *watch, page StorePage, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch != w {
		return false
	}
	if err != nil {
		w.wakeAll(t)
		return t.watch == w
	}
	w.at = max(w.at, page.Last)
	for i := range page.Events {
		if to := page.Events[i].Subscriber; to == "" {
			w.wakeAll(t)
		} else {
			w.wake(t, to)
			w.wake(t, sender.Operator)
		}
	}
	return t.watch == w
}

func (t *tail) drain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.drained:
	default:
		close(t.drained)
	}
}
