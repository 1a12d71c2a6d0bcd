package http1

import (
	"errors"
	"os"
	"time"

	"github.com/surehook/surehook/sender/internal/lru"
)

const (
	// sweepEvery is the time between two searches for connections that have waited
	// too long.
	sweepEvery = time.Second
	// mostHabits bounds the servers whose habits a client remembers, and
	// mostWatched the connections that it keeps only to learn from them.
	mostHabits  = 1024
	mostWatched = 32
)

// known gives a new connection its server's habit.
func (c *Client) known(cn *conn) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.habits == nil {
		c.habits = lru.New[origin, *habit](mostHabits)
	}
	h, ok := c.habits.Get(cn.to)
	if !ok {
		h = &habit{}
		c.habits.Put(cn.to, h)
	}
	cn.habit = h
	return cn
}

// surprised notes that a connection was closed by its server while it was kept.
func (c *Client) surprised(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.habit.surprise()
}

// begins notes that a request has begun.
func (c *Client) begins() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = false
}

// take returns the connection to an origin that was used last, or nil. It passes over
// those that have waited too long.
func (c *Client) take(to origin) *conn {
	now := time.Now()
	var old []*conn
	c.mu.Lock()
	c.closing = false
	cn := c.idle.take(to)
	for cn != nil && !now.Before(cn.until) {
		old = append(old, cn)
		cn = c.idle.take(to)
	}
	old = c.learnFrom(old, now)
	c.mu.Unlock()
	closeAll(old)
	return cn
}

// put keeps a connection for later.
func (c *Client) put(cn *conn) {
	now := time.Now()
	c.mu.Lock()
	h := cn.habit
	cn.since, cn.until = now, now.Add(h.keeps(cn.promised, c.IdleTimeout))
	if c.MaxAge > 0 {
		cn.until = earlier(cn.until, cn.made.Add(c.MaxAge))
	}
	old := []*conn{cn}
	switch {
	case c.closing || !cn.until.After(now):
	case h.broken && h.closes == 0 && len(c.learnFrom(old, now)) == 0:
		old = nil // the server closes sooner than expected: this connection shows when
	default:
		c.idle.put(cn)
		old = c.idle.removeOldest(c.idle.n - c.MaxIdle)
		if !c.sweeping && c.idle.n > 0 {
			c.sweeping = true
			time.AfterFunc(sweepEvery, c.sweep)
		}
	}
	c.mu.Unlock()
	closeAll(old)
}

// sweep closes the connections that were kept too long.
func (c *Client) sweep() {
	now := time.Now()
	c.mu.Lock()
	old := c.learnFrom(c.idle.removeUntil(now), now)
	if c.sweeping = c.idle.n > 0; c.sweeping {
		time.AfterFunc(sweepEvery, c.sweep)
	}
	c.mu.Unlock()
	closeAll(old)
}

// learnFrom watches the connections that there is something to learn from, and returns
// the others. None of them is in the pool, or is used again.
func (c *Client) learnFrom(old []*conn, now time.Time) (others []*conn) {
	for _, cn := range old {
		// A server may wait longer for a connection's first request than for
		// the later ones, so unused ones teach nothing.
		if c.closing || !cn.used || len(c.watched) >= mostWatched || !cn.habit.toWatch(cn.promised, now) {
			others = append(others, cn)
			continue
		}
		if c.watched == nil {
			c.watched = map[*conn]bool{}
		}
		cn.habit.watched, c.watched[cn] = true, true
		go c.watch(cn)
	}
	return others
}

// watch waits until the server closes an unused connection, or until IdleTimeout is
// over, and remembers how long that took.
func (c *Client) watch(cn *conn) {
	alive := cn.alive()
	err := cn.SetReadDeadline(cn.since.Add(c.IdleTimeout))
	if alive && err == nil {
		cn.remaining = 1
		_, err = cn.reader.Peek(1)
	}
	now := time.Now()
	_ = cn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.habit.watched = false
	if !c.watched[cn] {
		return // the client has closed it
	}
	delete(c.watched, cn)
	switch {
	case !alive:
		cn.habit.surprise() // when it was closed is not known
	case errors.Is(err, os.ErrDeadlineExceeded):
		cn.habit.learn(c.IdleTimeout+margin, now)
	case ClosedByPeer(err):
		cn.habit.learn(now.Sub(cn.since), now)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// closeAll closes connections, and waits for none: TLS sends an alert first, for which it
// waits for seconds if a server has stopped reading.
func closeAll(all []*conn) {
	for _, cn := range all {
		if cn.layers {
			go func() { _ = cn.Close() }()
		} else {
			_ = cn.Close()
		}
	}
}
