package ssrftest

import (
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// Outside is where packets go in a test of which addresses may be called. Connections to
// loopback are made; every other one is refused, and its address is noted. In a network of
// the test's own, all connections are made, because all addresses are there.
type Outside struct {
	Resolver *net.Resolver // nil: the one of production
	Real     bool          // in a network of its own
	Foreign  bool          // names are resolved by servers that are not the test's

	mu     sync.Mutex
	called []string
}

// NewOutside resolves names by NewZone.
func NewOutside() *Outside { return &Outside{Resolver: NewZone().Resolver()} }

// Watch is told of each address and port that the guard has let through, and returns how
// its connection ends.
func (o *Outside) Watch(address string) error {
	if o.Real {
		return nil // whoever listens there notes it
	}
	o.Note(address)
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().IsLoopback() {
		return nil
	}
	return syscall.ECONNREFUSED
}

// Note adds an address that was called.
func (o *Outside) Note(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.called = append(o.called, address)
}

// Take returns the addresses that were called since it was called last.
func (o *Outside) Take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	called := o.called
	o.called = nil
	return called
}
