// Package guard keeps deliveries away from the sender's own network (server-side
// request forgery). It checks twice. The first check is of a callback URL when it is
// registered, without looking names up, so that a plain mistake is reported at once.
// The second is of every address that is dialled, after resolution. Only the second
// protects: a name can resolve to several addresses, and to others later.
//
// The IANA registries of special-purpose addresses and of IPv6 global unicast decide
// which addresses are globally routable; see addresses.go. A proxy dials in place of
// the guard. So a guarded transport must have none, or must ask it only for addresses
// that CheckAddr allows, and never for a name.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrBlocked: an address may not be dialled. It says no more, so that the owner of the
// URL learns nothing of the network behind it. (The dialer wraps it in a net.OpError,
// whose text has the address: that is for the operator alone.)
var ErrBlocked = errors.New("guard: blocked")

// Policy says which addresses may be dialled. The zero value allows only globally
// routable unicast addresses. Several goroutines may use a policy at once while nobody
// changes its prefixes.
//
// An address is judged in this order: Deny; Allow; the metadata services of clouds,
// which are refused; AllowPrivateNetworks; the other built-in rules. An IPv4-mapped
// IPv6 address is judged as the IPv4 address. An IPv6 address that leads to an IPv4
// address (NAT64 by the well-known prefixes, 6to4, ISATAP, IPv4-translated and
// IPv4-compatible addresses) must pass itself, and the address that it embeds must
// pass, too, unless Allow has the IPv6 address itself. The unspecified addresses, 0.0.0.0
// and ::, lead to 127.0.0.1 and ::1 in the same way. The guard does not know a
// network's own NAT64 prefix: an operator who has one must deny it.
type Policy struct {
	// AllowPrivateNetworks allows all addresses that are not in Deny, loopback and
	// private networks included, and URLs with the scheme http. The addresses at
	// which clouds hand out credentials (see addresses.go) stay closed, unless
	// Allow has them.
	AllowPrivateNetworks bool

	// Allow has prefixes that may be dialled although the built-in rules refuse
	// them, metadata services too.
	Allow []netip.Prefix

	// Deny has prefixes that may not be dialled, whatever the other fields say,
	// such as the operator's own public addresses. An invalid prefix in it denies
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

// Control is for the field ControlContext of a net.Dialer. The dialer calls it for
// every address that it tries, after resolution and before it connects. Control allows
// only the networks tcp4 and tcp6, and refuses an address that it cannot parse.
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
	others := leadsTo(a)
	if p.denies(a) || slices.ContainsFunc(others[:], p.denies) {
		return false
	}
	if covered(p.Allow, a) {
		return true
	}
	for _, inner := range others {
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

// covered tells whether one of the prefixes contains a, which is unmapped. A prefix of
// IPv4-mapped addresses counts as the IPv4 prefix.
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
