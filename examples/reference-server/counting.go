package main

import (
	"context"
	"errors"
	"sync"
)

const (
	countsAtOnce = 2 // of all callers
	countsOfOne  = 4 // the one that is made, and those that wait for it
	retryCounts  = 5
)

// counting bounds the counts of what a filter would pass, as the library's portal bounds those of
// its pages: each reads thousands of rows. Of one subscriber, one is made at a time, and of all
// callers together, countsAtOnce. The others wait, and one that finds countsOfOne of its subscriber
// is refused. The operator only waits.
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

// do has a caller's count made in its turn, if that comes before ctx ends.
func (c *counting) do(ctx context.Context, by caller, count func() error) error {
	places := []chan struct{}{c.all}
	if !by.operator() {
		q := c.enter(by.id)
		if q == nil {
			return tooMany(retryCounts, "a subscriber may have %d filters tried at a time: wait until one is answered", countsOfOne)
		}
		defer c.leave(by.id, q)
		places = []chan struct{}{q.first, c.all}
	}
	for _, place := range places {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			p := unavailable("as many filters are being tried as can be at a time: try again", ctx.Err())
			p.retryAfter = retryCounts
			return p
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
