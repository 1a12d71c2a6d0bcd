// Package guard keeps deliveries away from the sender's own network (server-side
// request forgery). It looks twice: at a callback URL when it is registered,
// without looking names up, so that what can be told is told at once; and at
// every address that is dialled, after resolution, which is what protects: names
// change what they resolve to, and answer with several addresses.
//
// What is globally routable is decided by the IANA registries of special-purpose
// addresses and of IPv6 global unicast; see addresses.go. A proxy would move the
// dialling, and with it the guard, elsewhere: a transport that is to be guarded
// must have none, or ask it for an address that CheckAddr allows and never for a
// name.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrBlocked says that an address may not be dialled. It says no more, so that
// whoever chose the URL learns nothing of the network behind it. (The
// net.OpError that the dialer wraps it in has the address in its text: that is
// for the operator alone.)
var ErrBlocked = errors.New("guard: blocked")

// Policy says which addresses may be dialled. The zero value allows only globally
// routable unicast addresses. A policy may be used by several goroutines at once
// while nobody changes its prefixes.
//
// An address is judged in this order: Deny; Allow; the metadata services of clouds,
// which are refused; AllowPrivateNetworks; the other built-in rules. An IPv4 address
// in IPv6 clothes is judged as the IPv4 address (IPv4-mapped). One that IPv6 leads to
// an IPv4 address (NAT64 by the well-known prefixes, 6to4, ISATAP, IPv4-translated and
// IPv4-compatible addresses) must pass as what it embeds and as itself, unless Allow
// has it as itself. A network's own NAT64 prefix cannot be known here: an operator who
// has one denies it.
type Policy struct {
	// AllowPrivateNetworks lets every address be dialled that is not in Deny,
	// loopback and private networks included, and URLs have the scheme http. The
	// addresses at which clouds hand out credentials (see addresses.go) stay closed,
	// unless Allow has them.
	AllowPrivateNetworks bool

	// Allow has prefixes that may be dialled although the built-in rules refuse
	// them, metadata services too.
	Allow []netip.Prefix

	// Deny has prefixes that may not be dialled, whatever else is said: the
	// operator's own public addresses, say. An invalid prefix in it denies
	// everything.
	Deny []netip.Prefix
}

// Validate reports every prefix that cannot work, joined, or nil.
func (p Policy) Validate() error {
	var errs []error
	check := func(list string, prefixes []netip.Prefix) {
		for i, x := range prefixes {
			switch {
			case !x.IsValid():
				errs = append(errs, fmt.Errorf("guard: prefix %d of %s is invalid: give an address and a length that it can have", i, list))
			case x.Addr().Is4In6() && x.Bits() < 96:
				errs = append(errs, fmt.Errorf("guard: prefix %d of %s, %v, mixes IPv4 and IPv6: give one of each", i, list, x))
			}
		}
	}
	check("Allow", p.Allow)
	check("Deny", p.Deny)
	return errors.Join(errs...)
}

// CheckAddr returns ErrBlocked unless the address may be dialled. The zero Addr is
// refused, and so is every address with a zone: a zone names one of this
// machine's own links, and no prefix contains an address that has one.
func (p Policy) CheckAddr(a netip.Addr) error {
	if !p.allows(a) {
		return ErrBlocked
	}
	return nil
}

// Control is for the field ControlContext of a net.Dialer, which calls it for
// every address that it tries, after resolution and before the connection is
// begun. Only the networks tcp4 and tcp6 are allowed; an address that cannot be
// parsed is refused.
func (p Policy) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return ErrBlocked
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrBlocked
	}
	return p.CheckAddr(a.Addr())
}

func (p Policy) allows(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	leadsTo := embedded(a)
	if p.denies(a) {
		return false
	}
	for _, inner := range leadsTo {
		if inner.IsValid() && p.denies(inner) {
			return false
		}
	}
	if covered(p.Allow, a) {
		return true
	}
	for _, inner := range leadsTo {
		if inner.IsValid() && !p.allows(inner) {
			return false
		}
	}
	return !covered(metadata, a) && (p.AllowPrivateNetworks || routable(a))
}

func (p Policy) denies(a netip.Addr) bool {
	for _, x := range p.Deny {
		if !x.IsValid() {
			return true
		}
	}
	return covered(p.Deny, a)
}

// covered tells whether one of the prefixes contains a, which is unmapped. A
// prefix of IPv4-mapped addresses stands for the IPv4 prefix.
func covered(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, x := range prefixes {
		if x.Addr().Is4In6() && x.Bits() >= 96 {
			x = netip.PrefixFrom(x.Addr().Unmap(), x.Bits()-96)
		}
		if x.Contains(a) {
			return true
		}
	}
	return false
}
