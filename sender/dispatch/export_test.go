package dispatch

import (
	"context"
	"crypto/x509"
	"net"
)

// Trust makes the transports of proxies and client certificates trust roots.
func (d *Dispatcher) Trust(roots *x509.CertPool) { d.post.Trust(roots, false) }

// TrustEverywhere makes all transports trust roots.
func (d *Dispatcher) TrustEverywhere(roots *x509.CertPool) { d.post.Trust(roots, true) }

// KeepTransports bounds the transports that are kept.
func (d *Dispatcher) KeepTransports(most int) { d.post.Keep(most) }

// CloseIdle closes the idle connections of all transports, and returns how many are
// kept beside the plain one.
func (d *Dispatcher) CloseIdle() int { return d.post.CloseIdle() }

// Dial makes the dispatcher resolve names with resolver, unless it is nil, and tell watch
// of each address that the guard has let through, before it is called. An error of watch
// ends the dial.
func (d *Dispatcher) Dial(resolver *net.Resolver, watch func(address string) error) {
	d.post.Watch(resolver, watch)
}

// Connect makes the dispatcher connect to the proxy of a name by dial, or to endpoints
// without a proxy if the name is empty.
func (d *Dispatcher) Connect(proxy string, dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	d.post.Connect(proxy, dial)
}
