package post

import (
	"fmt"
	"time"
)

const (
	// proxyFailures is how many attempts must have failed by a proxy's fault, since it last
	// worked, for it to be taken as failing. A single one may be an address that it
	// forbids, or a connection that it happened to break off.
	proxyFailures = 2

	// proxyForget is how long after the last such failure a proxy is still taken as failing.
	// It may not be used any more.
	proxyForget = 15 * time.Minute

	// mostProxyProbes is how many attempts at a time find out whether a failing proxy
	// still does. One that hangs would otherwise keep the places of others.
	mostProxyProbes = 4
)

// ErrProbed: an attempt is not made now, since its proxy is failing and enough others are
// finding out whether it still does.
var ErrProbed = fmt.Errorf("it is failing, and %d attempts at a time find out whether it still does", mostProxyProbes)

// proxyWatch tells from what is met at a proxy whether it is failing. It is plain
// bookkeeping: no clock, no locks.
type proxyWatch struct {
	failures int
	first    time.Time // of them
	last     time.Time
	why      string // the last one
	host     string // if all were for one host, which the proxy may forbid: that; else ""
}

// failed notes an attempt that failed by the proxy's fault. host is the one that it was for,
// if it may be that the proxy only forbids that one; else "".
func (w *proxyWatch) failed(why, host string, now time.Time) {
	w.expire(now)
	switch {
	case w.failures == 0:
		w.first, w.host = now, host
	case w.host != host:
		w.host = ""
	}
	w.failures++
	w.last, w.why = now, why
}

// worked is that a tunnel was made, or an answer came through one, which ends it.
func (w *proxyWatch) worked() { *w = proxyWatch{} }

func (w *proxyWatch) failing(now time.Time) bool {
	w.expire(now)
	return w.failures >= proxyFailures
}

// holds reports whether the proxy gets only a few attempts until it works again. It gets all
// while it may be that it forbids one host alone.
func (w *proxyWatch) holds(now time.Time) bool { return w.failing(now) && w.host == "" }

func (w *proxyWatch) expire(now time.Time) {
	if now.Sub(w.last) > proxyForget {
		*w = proxyWatch{}
	}
}

func (p *proxy) failed(why, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch.failed(why, host, time.Now())
}

func (p *proxy) worked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch.worked()
}

// ProxyState is how a proxy does.
type ProxyState struct {
	Name    string
	Failing bool
	Since   time.Time // when it began to fail
	Why     string    // it failed last
	OneHost bool      // it may forbid a single host, and attempts for others are made as ever
}

func (p *proxy) state(now time.Time) ProxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	failing := p.watch.failing(now)
	return ProxyState{Name: p.name, Failing: failing, Since: p.watch.first, Why: p.watch.why, OneHost: p.watch.host != ""}
}

// enter counts an attempt through the proxy until leave is called, and reports whether
// it may be made now.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay++
	return p.underWay <= mostProxyProbes || !p.watch.holds(time.Now())
}

func (p *proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
}
