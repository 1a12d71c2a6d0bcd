package post

import (
	"context"
	"crypto/x509"
	"net"
	"syscall"
)

// Tests of the packages that have something posted reach the transports by the methods of
// this file, before the first attempt.

// Trust makes the transports of proxies and client certificates trust roots; all of them,
// if everywhere.
func (p *Poster) Trust(roots *x509.CertPool, everywhere bool) {
	p.transports.roots = roots
	if everywhere {
		p.transports.plain.(*client).TLS.RootCAs = roots
	}
}

// Keep bounds the transports that are kept for proxies and certificates.
func (p *Poster) Keep(most int) { p.transports.most = most }

// Watch makes names be resolved by resolver, unless it is nil, and tells watch of each
// address that the guard has let through, before it is called. If watch returns an error,
// the address is not called.
func (p *Poster) Watch(resolver *net.Resolver, watch func(address string) error) {
	ts := p.transports
	if resolver != nil {
		ts.dialer.Resolver = resolver
	}
	guarded := ts.dialer.ControlContext
	ts.dialer.ControlContext = func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if err := guarded(ctx, network, address, conn); err != nil {
			return err
		}
		return watch(address)
	}
}

// Connect makes the proxy of a name be reached by dial, or the endpoints that need none if
// the name is empty.
func (p *Poster) Connect(proxy string, dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	if proxy == "" {
		p.transports.plain.(*client).Dial = reporting(dial)
		return
	}
	p.transports.proxyOf(proxy).reach = dial
}
