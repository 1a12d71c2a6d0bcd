package sender

import "crypto/x509"

// Trust makes the transports of proxies and client certificates trust roots.
func (d *Dispatcher) Trust(roots *x509.CertPool) { d.post.transports.roots = roots }

// Trust makes the transports of proxies and client certificates trust roots.
func (c *Challenger) Trust(roots *x509.CertPool) { c.post.transports.roots = roots }

// KeepTransports bounds the transports that are kept.
func (d *Dispatcher) KeepTransports(most int) { d.post.transports.most = most }

// CloseIdle closes the idle connections of all transports that are kept, and
// returns how many are.
func (d *Dispatcher) CloseIdle() int {
	ts := d.post.transports
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for e := ts.used.Front(); e != nil; e = e.Next() {
		e.Value.(*ownTransport).CloseIdleConnections()
	}
	return ts.used.Len()
}
