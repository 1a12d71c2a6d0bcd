package soak

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

// reader follows the feed as the operator, and keeps its cursor like somebody who
// stores it: each life goes on where the one before was.
type reader struct {
	cursor   string
	versions map[sender.Object]int64
	gaps     atomic.Int64 // times that events were pruned before they were read
}

func (c *cycle) read(ctx context.Context) error {
	rng := c.cfg.rng("reader")
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
		page, err := r.Page(ctx, feed.Query{Viewer: sender.Operator, After: c.feed.cursor, Limit: 50, Wait: time.Second})
		var expired *feed.ExpiredError
		switch {
		case errors.As(err, &expired):
			c.w.count("gaps in the feed, told as such")
			c.feed.gaps.Add(1)
			c.feed.cursor = expired.Next
			clear(c.feed.versions)
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
		c.feed.cursor = page.Next
	}
	return nil
}

// inOrder checks that the versions of an object come as they were committed: rising,
// and by one where the library assigns them.
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
