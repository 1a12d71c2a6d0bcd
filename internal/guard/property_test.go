package guard_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/internal/guard"
)

func anyAddr(t *rapid.T) netip.Addr {
	switch b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"); rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return netip.AddrFrom4([4]byte(b[:4]))
	case 1:
		return netip.AddrFrom16(netip.AddrFrom4([4]byte(b[:4])).As16())
	case 2:
		return netip.AddrFrom16(nat64(netip.AddrFrom4([4]byte(b[:4]))))
	case 3:
		return netip.AddrFrom16(sixTo4(netip.AddrFrom4([4]byte(b[:4]))))
	default:
		b[0] = b[0]&0x1f | 0x20 // global unicast, mostly
		return netip.AddrFrom16([16]byte(b))
	}
}

func prefixOf(t *rapid.T, a netip.Addr) netip.Prefix {
	if a.Is4In6() {
		a = a.Unmap()
	}
	p, err := a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits"))
	require.NoError(t, err)
	return p
}

// A longer Deny never lets more addresses through, a denied address never gets through
// whatever the other fields say, and a longer Allow never closes an address.
func TestPropertyDenyWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, other := anyAddr(t), anyAddr(t)
		p := guard.Policy{AllowPrivateNetworks: rapid.Bool().Draw(t, "private")}
		before := p.CheckAddr(a) == nil

		wider := p
		wider.Allow = []netip.Prefix{prefixOf(t, other), prefixOf(t, a)}
		require.NoError(t, wider.CheckAddr(a), "it was allowed by name")
		require.True(t, !before || (guard.Policy{AllowPrivateNetworks: p.AllowPrivateNetworks, Allow: []netip.Prefix{prefixOf(t, other)}}).CheckAddr(a) == nil, "allowing something else took it away")

		narrower := wider
		narrower.Deny = []netip.Prefix{prefixOf(t, other)}
		require.True(t, narrower.CheckAddr(a) != nil || wider.CheckAddr(a) == nil)
		narrower.Deny = append(narrower.Deny, prefixOf(t, a))
		require.ErrorIs(t, narrower.CheckAddr(a), guard.ErrBlocked, "it is denied by name")
	})
}
