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
}

func (w *proxyWatch) failed(why string, now time.Time) {
	w.expire(now)
	if w.failures == 0 {
		w.first = now
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

func (w *proxyWatch) expire(now time.Time) {
	if now.Sub(w.last) > proxyForget {
		*w = proxyWatch{}
	}
}

func (p *proxy) failed(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch.failed(why, time.Now())
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
}

func (p *proxy) state(now time.Time) ProxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	failing := p.watch.failing(now)
	return ProxyState{Name: p.name, Failing: failing, Since: p.watch.first, Why: p.watch.why}
}

// enter counts an attempt through the proxy until leave is called, and reports whether
// it may be made now.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay++
	return p.underWay <= mostProxyProbes || !p.watch.failing(time.Now())
}

func (p *proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
}
