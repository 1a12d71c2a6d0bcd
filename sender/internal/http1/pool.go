package http1

import "time"

// origin identifies a server: requests of one origin can share connections.
type origin struct{ scheme, host string }

// pool has the connections that wait for a request, in the order in which they were put
// there. It is guarded by its client.
type pool struct {
	n              int
	oldest, newest *conn
	last           map[origin]*conn // the newest to an origin
}

// put puts a connection in as the newest one.
func (p *pool) put(cn *conn) {
	if p.last == nil {
		p.last = map[origin]*conn{}
	}
	cn.older, cn.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = cn
	} else {
		p.oldest = cn
	}
	p.newest = cn
	if cn.before = p.last[cn.to]; cn.before != nil {
		cn.before.after = cn
	}
	p.last[cn.to] = cn
	p.n++
}

// take removes and returns the newest connection to an origin, or nil. So the
// connections that are not needed grow old.
func (p *pool) take(to origin) *conn {
	cn := p.last[to]
	if cn != nil {
		p.remove(cn)
	}
	return cn
}

func (p *pool) remove(cn *conn) {
	if cn.older != nil {
		cn.older.newer = cn.newer
	} else {
		p.oldest = cn.newer
	}
	if cn.newer != nil {
		cn.newer.older = cn.older
	} else {
		p.newest = cn.older
	}
	if cn.before != nil {
		cn.before.after = cn.after
	}
	switch {
	case cn.after != nil:
		cn.after.before = cn.before
	case cn.before != nil:
		p.last[cn.to] = cn.before
	default:
		delete(p.last, cn.to)
	}
	cn.older, cn.newer, cn.before, cn.after = nil, nil, nil, nil
	p.n--
}

// removeOldest removes the n oldest, none if n is not positive.
func (p *pool) removeOldest(n int) (out []*conn) {
	for ; n > 0 && p.oldest != nil; n-- {
		out = append(out, p.oldest)
		p.remove(p.oldest)
	}
	return out
}

// removeUntil removes those that may not wait any longer.
func (p *pool) removeUntil(now time.Time) (out []*conn) {
	for cn := p.oldest; cn != nil; {
		next := cn.newer
		if !now.Before(cn.until) {
			out = append(out, cn)
			p.remove(cn)
		}
		cn = next
	}
	return out
}
