package http2

import (
	"net/http"
	"slices"
	"time"
)

// sweepEvery is the time between two searches for connections that have waited too
// long.
const sweepEvery = time.Second

// conn is a connection that serves several exchanges at a time.
type conn struct {
	*http.ClientConn
	network *meter
	address string
	made    time.Time

	// Guarded by the client:
	streams int       // under way
	proven  bool      // it has had an answer, so its server has said how many streams it allows
	retired bool      // nothing is begun on it any more
	since   time.Time // there have been no streams
}

// add notes a new connection, of one stream.
func (c *Client) add(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		c.conns = map[string][]*conn{}
	}
	cn.streams = 1
	c.renew(cn)
	c.conns[cn.address] = append(c.conns[cn.address], cn)
}

// take returns a connection that has been used before and has room for another stream,
// or nil.
func (c *Client) take(address string, reuse bool) *conn {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = false
	if !reuse {
		return nil
	}
	for _, cn := range slices.Backward(c.conns[address]) {
		if cn.proven && !cn.retired && now.Sub(cn.made) < c.MaxAge && cn.Reserve() == nil {
			cn.streams++
			c.renew(cn)
			return cn
		}
	}
	return nil
}

// answered notes that a server has answered on a connection.
func (c *Client) answered(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.proven = true
}

// put notes that a stream has ended. If the connection is not sound it is not used
// again.
func (c *Client) put(cn *conn, sound bool) {
	now := time.Now()
	c.mu.Lock()
	cn.streams--
	c.renew(cn)
	cn.since, cn.retired = now, cn.retired || !sound || c.closing
	var old []*conn
	if cn.retired && cn.streams == 0 {
		old = c.old(now)
	} else if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(sweepEvery, c.sweep)
	}
	c.mu.Unlock()
	closeAll(old)
}

// sweep closes the connections that were kept too long.
func (c *Client) sweep() {
	c.mu.Lock()
	c.sweeping = false
	old := c.old(time.Now())
	c.mu.Unlock()
	closeAll(old)
}

// old removes the unused connections that must not be used again, or are too many.
func (c *Client) old(now time.Time) (out []*conn) {
	var idle []*conn
	for address, all := range c.conns {
		all = slices.DeleteFunc(all, func(cn *conn) bool {
			switch {
			case cn.streams > 0:
				return false
			case cn.retired || now.Sub(cn.since) >= c.IdleTimeout || now.Sub(cn.made) >= c.MaxAge || cn.Available() == 0:
				out = append(out, cn)
				return true
			}
			idle = append(idle, cn)
			return false
		})
		if c.conns[address] = all; len(all) == 0 {
			delete(c.conns, address)
		}
	}
	if n := len(idle) - c.MaxIdle; n > 0 {
		slices.SortFunc(idle, func(a, b *conn) int { return a.since.Compare(b.since) })
		for _, cn := range idle[:n] {
			cn.retired = true // and taken out the next time
			out = append(out, cn)
		}
	}
	if !c.sweeping && len(c.conns) > 0 {
		c.sweeping = true
		time.AfterFunc(sweepEvery, c.sweep)
	}
	return out
}

// CloseIdleConnections closes the unused connections. Until another request begins, the
// others are closed, too, when their last stream ends.
func (c *Client) CloseIdleConnections() {
	c.mu.Lock()
	c.closing = true
	for _, all := range c.conns {
		for _, cn := range all {
			cn.retired = true
		}
	}
	old := c.old(time.Now())
	c.mu.Unlock()
	closeAll(old)
}

func closeAll(all []*conn) {
	for _, cn := range all {
		_ = cn.Close()
	}
}
