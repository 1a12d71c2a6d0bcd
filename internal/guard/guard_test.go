package guard_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// first and last of each range that is refused, and their neighbours where those
// are routable.
func TestRangesAreRefusedToTheirEdges(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ before, first, last, after string }{
		{"", "0.0.0.0", "0.255.255.255", "1.0.0.0"},
		{"", "0.0.0.1", "0.127.255.255", ""}, // which do not lead to loopback
		{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
		{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
		{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
		{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"},
		{"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
		{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
		{"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
		{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
		{"192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0"},
		{"192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0"},
		{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
		{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
		{"192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0"},
		{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
		{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
		{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
		{"223.255.255.255", "224.0.0.0", "239.255.255.255", ""},
		{"", "240.0.0.0", "255.255.255.255", ""},

		{"", "::", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", ""},
		{"", "64:ff9b:0:0:0:1:808:808", "64:ff9b:0:0:ffff:ffff:808:808", ""}, // which lead to nothing
		{"64:ff9b::808:808", "64:ff9b:0:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"},
		{"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
		{"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
		{"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::"},
		{"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
		{"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	} {
		for _, s := range []string{r.before, r.after} {
			if s != "" {
				require.NoError(t, guard.Policy{}.CheckAddr(netip.MustParseAddr(s)), s)
			}
		}
		first, last := netip.MustParseAddr(r.first), netip.MustParseAddr(r.last)
		require.ErrorIs(t, guard.Policy{}.CheckAddr(first), guard.ErrBlocked, r.first)
		require.ErrorIs(t, guard.Policy{}.CheckAddr(last), guard.ErrBlocked, r.last)
	}
}

// The clouds' services that hand out credentials stay closed if private networks are
// open, in all forms of their addresses, unless Allow names them.
func TestMetadataServices(t *testing.T) {
	t.Parallel()
	private := guard.Policy{AllowPrivateNetworks: true}
	for _, s := range []string{
		"169.254.169.254", "169.254.169.252", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42", "100.100.100.200", "192.0.0.192", "168.63.129.16",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1", "fe80::a9fe:a9fe",
	} {
		a := netip.MustParseAddr(s)
		named := guard.Policy{AllowPrivateNetworks: true, Allow: []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}}
		denied := guard.Policy{AllowPrivateNetworks: true, Allow: named.Allow, Deny: named.Allow}
		check := func(a netip.Addr) {
			t.Helper()
			require.ErrorIs(t, guard.Policy{}.CheckAddr(a), guard.ErrBlocked, a)
			require.ErrorIs(t, private.CheckAddr(a), guard.ErrBlocked, a)
			require.NoError(t, named.CheckAddr(a), a)
			require.ErrorIs(t, denied.CheckAddr(a), guard.ErrBlocked, a)
		}
		check(a)
		for _, neighbour := range []netip.Addr{a.Prev(), a.Next()} {
			require.NoError(t, private.CheckAddr(neighbour), "of %v", a)
		}
		if !a.Is4() {
			continue
		}
		for name, c := range clothes {
			if !strings.HasPrefix(name, "Teredo") { // whose packets end at a tunnel, not at the address
				check(netip.MustParseAddr(c.of(halves(s))))
			}
		}
	}
}

// clothes are the forms of an IPv4 address as an IPv6 address.
var clothes = map[string]struct {
	of     func(a, b uint16) string // the two halves of the IPv4 address
	judged bool                     // by the embedded address; else always refused
}{
	"IPv4-mapped":         {func(a, b uint16) string { return fmt.Sprintf("::ffff:%x:%x", a, b) }, true},
	"NAT64":               {func(a, b uint16) string { return fmt.Sprintf("64:ff9b::%x:%x", a, b) }, true},
	"6to4":                {func(a, b uint16) string { return fmt.Sprintf("2002:%x:%x::1", a, b) }, true},
	"ISATAP, private":     {func(a, b uint16) string { return fmt.Sprintf("2600::5efe:%x:%x", a, b) }, true},
	"ISATAP, global":      {func(a, b uint16) string { return fmt.Sprintf("2600::200:5efe:%x:%x", a, b) }, true},
	"ISATAP within 6to4":  {func(a, b uint16) string { return fmt.Sprintf("2002:808:808::5efe:%x:%x", a, b) }, true},
	"6to4 of an ISATAP":   {func(a, b uint16) string { return fmt.Sprintf("2002:%x:%x::5efe:808:808", a, b) }, true},
	"IPv4-compatible":     {func(a, b uint16) string { return fmt.Sprintf("::%x:%x", a, b) }, false},
	"IPv4-translated":     {func(a, b uint16) string { return fmt.Sprintf("::ffff:0:%x:%x", a, b) }, false},
	"NAT64, local prefix": {func(a, b uint16) string { return fmt.Sprintf("64:ff9b:1:ffff:ffff:ffff:%x:%x", a, b) }, false},
	"Teredo, as server":   {func(a, b uint16) string { return fmt.Sprintf("2001:0:%x:%x::", a, b) }, false},
	"Teredo, as client":   {func(a, b uint16) string { return fmt.Sprintf("2001::%x:%x", ^a, ^b) }, false},
}

func halves(s string) (a, b uint16) {
	v := netip.MustParseAddr(s).As4()
	return binary.BigEndian.Uint16(v[:2]), binary.BigEndian.Uint16(v[2:])
}

func TestIPv4InIPv6Clothes(t *testing.T) {
	t.Parallel()
	deny := guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("8.8.4.0/24")}}
	allow := guard.Policy{Allow: []netip.Prefix{prefix("10.1.0.0/16")}}
	for name, c := range clothes {
		addr := func(v4 string) netip.Addr { return netip.MustParseAddr(c.of(halves(v4))) }
		for _, v4 := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "0.0.0.0", "224.0.0.1", "255.255.255.255"} {
			require.ErrorIs(t, guard.Policy{}.CheckAddr(addr(v4)), guard.ErrBlocked, "%s %s", name, v4)
		}
		if !c.judged {
			require.ErrorIs(t, guard.Policy{}.CheckAddr(addr("8.8.8.8")), guard.ErrBlocked, name)
			continue
		}
		require.NoError(t, guard.Policy{}.CheckAddr(addr("8.8.8.8")), name)
		require.NoError(t, allow.CheckAddr(addr("10.1.2.3")), "what is embedded is allowed: %s", name)
		require.ErrorIs(t, allow.CheckAddr(addr("10.2.0.1")), guard.ErrBlocked, name)
		require.NoError(t, deny.CheckAddr(addr("10.2.0.1")), name)
		require.ErrorIs(t, deny.CheckAddr(addr("8.8.4.4")), guard.ErrBlocked, "what is embedded is denied: %s", name)
	}
	for _, s := range []string{
		"2600::100:5efe:7f00:1", "2600::1:5efe:7f00:1", "2600::fe:7f00:1", "2600::5e00:7f00:1", // not quite ISATAP identifiers
		"2003:7f00:1::1", // next to 6to4
	} {
		require.NoError(t, guard.Policy{}.CheckAddr(netip.MustParseAddr(s)), s)
	}
}

func TestOrderOfTheRules(t *testing.T) {
	t.Parallel()
	both := []netip.Prefix{prefix("10.0.0.0/8"), prefix("fd00::/8")}
	for name, tt := range map[string]struct {
		policy  guard.Policy
		addr    string
		allowed bool
	}{
		"zero, public":                       {guard.Policy{}, "8.8.8.8", true},
		"zero, private":                      {guard.Policy{}, "10.0.0.1", false},
		"private networks":                   {guard.Policy{AllowPrivateNetworks: true}, "10.0.0.1", true},
		"private networks, loopback":         {guard.Policy{AllowPrivateNetworks: true}, "::1", true},
		"private networks, Teredo":           {guard.Policy{AllowPrivateNetworks: true}, "2001::1", true},
		"private networks, embedded":         {guard.Policy{AllowPrivateNetworks: true}, "64:ff9b::7f00:1", true},
		"private networks, metadata":         {guard.Policy{AllowPrivateNetworks: true}, "169.254.169.254", false},
		"private networks, its neighbour":    {guard.Policy{AllowPrivateNetworks: true}, "169.254.169.253", true},
		"metadata within what is allowed":    {guard.Policy{Allow: []netip.Prefix{prefix("169.254.0.0/16")}}, "169.254.169.254", true},
		"allow before metadata":              {guard.Policy{AllowPrivateNetworks: true, Allow: both}, "fd00:ec2::254", true},
		"allow of other metadata":            {guard.Policy{AllowPrivateNetworks: true, Allow: both}, "169.254.169.254", false},
		"allow of the clothes of metadata":   {guard.Policy{AllowPrivateNetworks: true, Allow: []netip.Prefix{prefix("64:ff9b::/96")}}, "64:ff9b::a9fe:a9fe", true},
		"allow before the built-in rules":    {guard.Policy{Allow: both}, "10.0.0.1", true},
		"allow before the built-in, IPv6":    {guard.Policy{Allow: both}, "fd00::1", true},
		"allow of others":                    {guard.Policy{Allow: both}, "192.168.0.1", false},
		"allow does not narrow":              {guard.Policy{Allow: both}, "8.8.8.8", true},
		"allow of the clothes":               {guard.Policy{Allow: []netip.Prefix{prefix("64:ff9b::/96")}}, "64:ff9b::7f00:1", true},
		"allow as IPv4-mapped":               {guard.Policy{Allow: []netip.Prefix{prefix("::ffff:10.0.0.0/104")}}, "10.9.9.9", true},
		"allow as IPv4-mapped, outside":      {guard.Policy{Allow: []netip.Prefix{prefix("::ffff:10.0.0.0/104")}}, "127.0.0.1", false},
		"deny before the built-in rules":     {guard.Policy{Deny: []netip.Prefix{prefix("8.8.8.8/32")}}, "8.8.8.8", false},
		"deny of others":                     {guard.Policy{Deny: []netip.Prefix{prefix("8.8.8.8/32")}}, "8.8.8.9", true},
		"deny before allow":                  {guard.Policy{Allow: both, Deny: []netip.Prefix{prefix("10.0.0.0/24")}}, "10.0.0.1", false},
		"deny before private networks":       {guard.Policy{AllowPrivateNetworks: true, Deny: both}, "10.0.0.1", false},
		"deny before private networks, IPv6": {guard.Policy{AllowPrivateNetworks: true, Deny: both}, "fd00:ec2::254", false},
		"deny, given IPv4-mapped address":    {guard.Policy{Deny: []netip.Prefix{prefix("8.8.8.8/32")}}, "::ffff:8.8.8.8", false},
		"deny as IPv4-mapped":                {guard.Policy{Deny: []netip.Prefix{prefix("::ffff:8.8.8.0/120")}}, "8.8.8.8", false},
		"deny of all IPv4, IPv4-mapped":      {guard.Policy{Deny: []netip.Prefix{prefix("::ffff:0:0/96")}}, "8.8.8.8", false},
		"deny as a mix of both":              {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("::ffff:0:0/64")}}, "::1", false},
		"deny with host bits":                {guard.Policy{Deny: []netip.Prefix{prefix("8.8.8.8/24")}}, "8.8.8.1", false},
		"deny, invalid":                      {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{{}}}, "8.8.8.8", false},
		"allow, invalid":                     {guard.Policy{Allow: []netip.Prefix{{}}}, "10.0.0.1", false},
		"private networks, unspecified":      {guard.Policy{AllowPrivateNetworks: true}, "0.0.0.0", true},
		"private networks, unspecified IPv6": {guard.Policy{AllowPrivateNetworks: true}, "::", true},
		"deny of loopback, unspecified":      {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("127.0.0.1/32")}}, "0.0.0.0", false},
		"deny of loopback, its IPv6 clothes": {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("127.0.0.0/8")}}, "::", false},
		"deny of loopback, dressed again":    {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("127.0.0.0/8")}}, "64:ff9b::", false},
		"deny of IPv6 loopback, unspecified": {guard.Policy{AllowPrivateNetworks: true, Deny: []netip.Prefix{prefix("::1/128")}}, "::", false},
		"deny of loopback, allow of all":     {guard.Policy{Allow: []netip.Prefix{prefix("::/0"), prefix("0.0.0.0/0")}, Deny: []netip.Prefix{prefix("127.0.0.0/8")}}, "::", false},
		"allow of the unspecified":           {guard.Policy{Allow: []netip.Prefix{prefix("0.0.0.0/32")}}, "0.0.0.0", true},
	} {
		err := tt.policy.CheckAddr(netip.MustParseAddr(tt.addr))
		if tt.allowed {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, guard.ErrBlocked, name)
		}
	}
}

func TestZonesAndNothingFailClosed(t *testing.T) {
	t.Parallel()
	for _, p := range []guard.Policy{{}, {AllowPrivateNetworks: true}, {Allow: []netip.Prefix{prefix("fe80::/10"), prefix("2600::/12")}}} {
		require.ErrorIs(t, p.CheckAddr(netip.Addr{}), guard.ErrBlocked)
		for _, s := range []string{"::1%lo", "::1%zzz", "fe80::1%eth0", "fd00:ec2::254%eth0", "2600::1%eth0", "::ffff:8.8.8.8%lo"} {
			require.ErrorIs(t, p.CheckAddr(netip.MustParseAddr(s)), guard.ErrBlocked, s)
		}
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	private := guard.Policy{AllowPrivateNetworks: true}
	for _, tt := range []struct {
		network, address string
		zero, private    bool
	}{
		{"tcp4", "8.8.8.8:443", true, true},
		{"tcp6", "[2600::1]:443", true, true},
		{"tcp6", "[::ffff:8.8.8.8]:443", true, true},
		{"tcp4", "127.0.0.1:443", false, true},
		{"tcp6", "[::1]:443", false, true},
		{"tcp6", "[::ffff:127.0.0.1]:443", false, true},
		{"tcp6", "[::1%lo]:443", false, false},
		{"tcp4", "169.254.169.254%lo:80", false, false},
		{"tcp", "8.8.8.8:443", false, false},
		{"tcp5", "8.8.8.8:443", false, false},
		{"udp4", "8.8.8.8:443", false, false},
		{"udp6", "[2600::1]:443", false, false},
		{"ip4", "8.8.8.8", false, false},
		{"unix", "/var/run/docker.sock", false, false},
		{"", "8.8.8.8:443", false, false},
		{"tcp4", "", false, false},
		{"tcp4", "8.8.8.8", false, false},
		{"tcp4", "8.8.8.8:", false, false},
		{"tcp4", "8.8.8.8:https", false, false},
		{"tcp4", "8.8.8.8:65536", false, false},
		{"tcp4", "08.8.8.8:443", false, false},
		{"tcp4", "134744072:443", false, false},
		{"tcp4", "example.com:443", false, false},
		{"tcp6", "2600::1:443", false, false},
		{"tcp6", ":443", false, false},
	} {
		for p, allowed := range map[*guard.Policy]bool{{}: tt.zero, &private: tt.private} {
			err := p.Control(t.Context(), tt.network, tt.address, nil)
			if allowed {
				require.NoError(t, err, tt.address)
			} else {
				require.ErrorIs(t, err, guard.ErrBlocked, "%s %s", tt.network, tt.address)
				require.Equal(t, "guard: blocked", err.Error(), "no more than the class")
			}
		}
	}
	require.True(t, errors.Is(&net.OpError{Op: "dial", Err: guard.ErrBlocked}, guard.ErrBlocked))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, guard.Policy{}.Validate())
	good := []netip.Prefix{prefix("10.0.0.0/8"), prefix("::/0"), prefix("::ffff:0:0/96")}
	require.NoError(t, guard.Policy{Allow: good, Deny: good}.Validate())
	err := guard.Policy{
		Allow: []netip.Prefix{prefix("10.0.0.0/8"), {}},
		Deny:  []netip.Prefix{prefix("::ffff:0:0/95"), netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 33)},
	}.Validate()
	require.ErrorContains(t, err, "prefix 1 of Allow is invalid")
	require.ErrorContains(t, err, "prefix 0 of Deny, ::ffff:0.0.0.0/95, mixes IPv4 and IPv6")
	require.ErrorContains(t, err, "prefix 1 of Deny is invalid")
}

func BenchmarkCheckAddr(b *testing.B) {
	for _, s := range []string{"8.8.8.8", "127.0.0.1", "2606:4700:4700::1111", "64:ff9b::808:808"} {
		a := netip.MustParseAddr(s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = guard.Policy{}.CheckAddr(a)
			}
		})
	}
}

func BenchmarkControl(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = guard.Policy{}.Control(b.Context(), "tcp4", "8.8.8.8:443", nil)
	}
}
