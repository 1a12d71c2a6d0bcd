package portal

import (
	"context"
	"sync"
)

const (
	countsAtOnce = 2 // of all subscribers
	countsOfOne  = 4 // the one that is made, and those that wait for it
)

// counting bounds the counts of what a replay would send, or a filter pass: each reads thousands
// of rows. Of one subscriber, one is made at a time, and of all together, countsAtOnce. The
// others wait, and one that finds countsOfOne of its subscriber is refused.
type counting struct {
	all chan struct{} // has one element for each that is made

	mu sync.Mutex
	of map[string]*queue // by subscriber; those without a request are not in it
}

type queue struct {
	first chan struct{} // has an element while one is made
	n     int           // with those that wait
}

func newCounting() *counting {
	return &counting{all: make(chan struct{}, countsAtOnce), of: map[string]*queue{}}
}

// do has a subscriber's count made in its turn.
func (c *counting) do(ctx context.Context, subscriber string, count func() error) error {
	q := c.enter(subscriber)
	if q == nil {
		return tooMany("Some of your pages are counting what would be sent already. Wait until they are done, and try again.")
	}
	defer c.leave(subscriber, q)
	for _, place := range []chan struct{}{q.first, c.all} {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return count()
}

// enter returns nil if there are too many.
func (c *counting) enter(subscriber string) *queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.of[subscriber]
	if q == nil {
		q = &queue{first: make(chan struct{}, 1)}
		c.of[subscriber] = q
	}
	if q.n == countsOfOne {
		return nil
	}
	q.n++
	return q
}

func (c *counting) leave(subscriber string, q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.n--; q.n == 0 {
		delete(c.of, subscriber)
	}
}
