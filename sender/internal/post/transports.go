package post

import (
	"container/list"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxTransports bounds how many transports of their own are kept for
// subscriptions with a proxy or a client certificate.
const maxTransports = 512

// transports choose what an attempt is made with: the plain transport, unless the
// subscription's settings ask for a proxy or a client certificate. Those have one
// of their own, so that no connection is shared between what differs in them. The
// ones used last are kept, with their idle connections.
type transports struct {
	Config
	dialer  *net.Dialer
	plain   http.RoundTripper
	origins *origins
	roots   *x509.CertPool // nil: the system's
	most    int

	mu   sync.Mutex
	own  map[transportKey]*list.Element
	used list.List         // of *dedicatedTransport, the one used last in front
	made map[string]*proxy // those of proxies that were used, by name
}

// transportKey is what attempts must have in common to share connections. The
// subscription is a part of it where there is a certificate, because the
// certificate is bound to it.
type transportKey struct {
	proxy        string
	subscription string
	certificate  [sha256.Size]byte // of what is sealed
}

type dedicatedTransport struct {
	*client
	proxy    *proxy // nil: none
	key      transportKey
	attempts int // under way; guarded by transports.mu
	evicted  bool
}

func newTransports(c Config) *transports {
	ts := &transports{Config: c, dialer: newDialer(c.Policy, c.Timeout), plain: c.Unguarded, origins: newOrigins(), most: maxTransports, own: map[transportKey]*list.Element{}, made: map[string]*proxy{}}
	if ts.plain == nil {
		ts.plain = newTransport(ts.dialer, c.Places, ts.origins)
	}
	return ts
}

// of returns the transport for a request, and what to release after the attempt.
// An error says why nothing can be sent as the request asks; then nothing may be
// sent at all.
func (ts *transports) of(r *Request, certificate func() (*tls.Certificate, error)) (http.RoundTripper, *dedicatedTransport, error) {
	if r.Proxy == "" && len(r.SealedCertificate) == 0 {
		return ts.plain, nil, nil
	}
	if ts.Unguarded != nil {
		return nil, nil, fmt.Errorf("sender: subscription %q asks for a proxy or a client certificate, which an UnguardedTransport does not give", r.Subscription)
	}
	key := transportKey{proxy: r.Proxy}
	if len(r.SealedCertificate) > 0 {
		if r.URL.Scheme != "https" {
			return nil, nil, fmt.Errorf("sender: subscription %q has a client certificate, and a URL that is not https", r.Subscription)
		}
		key.subscription, key.certificate = r.Subscription, sha256.Sum256(r.SealedCertificate)
	}
	if o := ts.take(key); o != nil {
		return ts.admit(o)
	}
	made, err := ts.make(r, key, certificate)
	if err != nil {
		return nil, nil, err
	}
	return ts.admit(ts.keep(made))
}

// admit returns a transport for an attempt, unless that must not be made now, because
// the transport's proxy is failing.
func (ts *transports) admit(o *dedicatedTransport) (http.RoundTripper, *dedicatedTransport, error) {
	if o.proxy != nil && !o.proxy.enter() {
		ts.release(o)
		return nil, nil, ErrProbed
	}
	return o, o, nil
}

// take returns the transport of a key, if it is kept, for one attempt.
func (ts *transports) take(key transportKey) *dedicatedTransport {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	e := ts.own[key]
	if e == nil {
		return nil
	}
	ts.used.MoveToFront(e)
	o := e.Value.(*dedicatedTransport)
	o.attempts++
	return o
}

func (ts *transports) make(r *Request, key transportKey, certificate func() (*tls.Certificate, error)) (*dedicatedTransport, error) {
	o := &dedicatedTransport{key: key, client: newTransport(ts.dialer, ts.Places, ts.origins)}
	o.TLS.RootCAs = ts.roots
	if r.Proxy != "" {
		if o.proxy = ts.proxyOf(r.Proxy); o.proxy == nil {
			return nil, fmt.Errorf("sender: subscription %q asks for the proxy %q, which is not among the Proxies of the configuration", r.Subscription, r.Proxy)
		}
		o.Dial = unconfirmed(o.proxy.tunnel)
	}
	if len(r.SealedCertificate) > 0 {
		opened, err := certificate()
		if err != nil {
			return nil, err
		}
		// The authorities that the server names do not matter: its owner has chosen this
		// certificate for it.
		o.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return opened, nil }
	}
	return o, nil
}

// proxyOf returns the proxy of a name, or nil if the configuration has none.
func (ts *transports) proxyOf(name string) *proxy {
	u := ts.Proxies[name]
	if u == nil {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	p := ts.made[name]
	if p == nil {
		p = newProxy(name, u, ts.Policy, ts.Timeout, ts.roots, ts.dialer.Resolver)
		ts.made[name] = p
	}
	return p
}

// proxyStates returns how the proxies do that were used, in no order.
func (ts *transports) proxyStates(now time.Time) []ProxyState {
	if len(ts.Proxies) == 0 {
		return nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	states := make([]ProxyState, 0, len(ts.made))
	for _, p := range ts.made {
		states = append(states, p.state(now))
	}
	return states
}

// keep puts a transport in front, or the one that somebody else has made of the
// same key meanwhile, for one attempt, and evicts what is beyond the bound.
func (ts *transports) keep(made *dedicatedTransport) *dedicatedTransport {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if e := ts.own[made.key]; e != nil {
		made = e.Value.(*dedicatedTransport)
		ts.used.MoveToFront(e)
	} else {
		ts.own[made.key] = ts.used.PushFront(made)
	}
	made.attempts++
	for ts.used.Len() > ts.most {
		o := ts.used.Remove(ts.used.Back()).(*dedicatedTransport)
		delete(ts.own, o.key)
		o.evicted = true
		if o.attempts == 0 {
			o.CloseIdleConnections()
		}
	}
	return made
}

// release ends an attempt's use of what of returned. Closing the idle connections
// of a transport also closes those that become idle later, as long as nothing is
// begun on it.
func (ts *transports) release(o *dedicatedTransport) {
	if o == nil {
		return
	}
	if o.proxy != nil {
		o.proxy.leave()
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	o.attempts--
	if o.evicted && o.attempts == 0 {
		o.CloseIdleConnections()
	}
}

// closeIdle is for CloseIdle.
func (ts *transports) closeIdle() (kept int) {
	if plain, ok := ts.plain.(*client); ok {
		plain.CloseIdleConnections()
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, e := range ts.own {
		e.Value.(*dedicatedTransport).CloseIdleConnections()
	}
	return len(ts.own)
}
