package challenge

import (
	"crypto/x509"
	"net"
)

// Trust makes the transports of proxies and client certificates trust roots.
func (c *Challenger) Trust(roots *x509.CertPool) { c.post.Trust(roots, false) }

// Dial is like Dispatcher.Dial.
func (c *Challenger) Dial(resolver *net.Resolver, watch func(address string) error) {
	c.post.Watch(resolver, watch)
}
