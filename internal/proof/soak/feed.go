package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

// reader follows the feed as the operator. Each of its lives goes on from the last
// cursor of the one before.
type reader struct {
	cursor   string
	versions map[sender.Object]int64
	mu       sync.Mutex
	read     time.Time // when a page was last asked for that came; zero: not in this cycle
	gap      time.Time // when it was last told that events were pruned before they were read
}

// excuses tells whether an event may have been pruned before it could be read.
func (r *reader) excuses(e *event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.began.Before(r.gap)
}

// expired notes that events were pruned before they were read. It returns since when
// nothing was read.
func (r *reader) expired(next string) (since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since = time.Since(r.read)
	r.gap, r.cursor = time.Now(), next
	clear(r.versions)
	return since
}

func (c *cycle) read(ctx context.Context) error {
	rng := c.cfg.rng("reader")
	c.feed.read = time.Time{} // all was pruned since
	for ctx.Err() == nil {
		db, err := c.place.openSending(ctx)
		if err != nil {
			return fmt.Errorf("reader: %w", err)
		}
		life, stop := context.WithTimeout(ctx, time.Duration((0.5+rng.Float64())*float64(max(c.load/6, time.Second))))
		err = c.pages(life, db)
		stop()
		db.close()
		if err != nil {
			return fmt.Errorf("reader: %w", err)
		}
	}
	return nil
}

func (c *cycle) pages(ctx context.Context, db *sending) error {
	r, err := feed.NewReader(db.store, &feed.ReaderConfig{Poll: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	defer r.Drain()
	for ctx.Err() == nil {
		asked := time.Now()
		page, err := r.Page(ctx, feed.Query{Viewer: sender.Operator, After: c.feed.cursor, Limit: 50, Wait: time.Second})
		var expired *feed.ExpiredError
		switch {
		case errors.As(err, &expired):
			c.w.count("gaps in the feed, told as such")
			if since := c.feed.expired(expired.Next); since < c.cfg.patience() {
				c.w.add("feed", "it told of a gap, and %v before a page came", since)
			}
			continue
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for _, e := range page.Events {
			c.w.count("events read from the feed")
			c.inOrder(e)
			stored := e.Body
			if stored == nil {
				c.w.add("feed", "event %s came without its body", e.ID)
				continue
			}
			c.w.fed(e.ID, stored)
		}
		c.feed.mu.Lock()
		c.feed.cursor, c.feed.read = page.Next, asked
		c.feed.mu.Unlock()
	}
	return nil
}

// inOrder checks that the versions of an object come in the order of their commits:
// rising, and by one if the library assigns them.
func (c *cycle) inOrder(e sender.StoredEvent) {
	if !ours(e.Type) {
		return
	}
	last := c.feed.versions[e.Object]
	c.feed.versions[e.Object] = e.Version
	switch {
	case last == 0:
	case e.Version <= last, e.Object.Type == "thing" && e.Version != last+1:
		c.w.add("feed", "version %d of %v came after version %d", e.Version, e.Object, last)
	}
}
