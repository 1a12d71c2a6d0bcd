package guard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ssrftest"
)

// What passes as an address is public by the standard library's reading too, in every
// clothes that it can have, and not under any name of a link of this machine.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"8.8.8.8", "127.0.0.1", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "64:ff9b::808:808", "64:ff9b::a9fe:a9fe",
		"2002:808:808::1", "2002:a9fe:a9fe::1", "2600::5efe:10.0.0.1", "2600::1", "fe80::1%lo", "fd00:ec2::254", "2001:db8::1", "168.63.129.16", "100.64.0.1",
	} {
		b := netip.MustParseAddr(s).As16()
		f.Add(b[:], netip.MustParseAddr(s).Zone())
	}
	f.Fuzz(func(t *testing.T, bytes []byte, zone string) {
		var b [16]byte
		copy(b[:], bytes)
		a := netip.AddrFrom16(b)
		if len(bytes) == 4 {
			a = netip.AddrFrom4([4]byte(bytes))
		}
		err := guard.Policy{}.CheckAddr(a.WithZone(zone))
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		// A port behind an address reads as the address alone.
		if at := netip.AddrPortFrom(a.WithZone(zone), 443); !strings.ContainsAny(zone, "]%") && (guard.Policy{}.Control(t.Context(), network, at.String(), nil) == nil) != (err == nil) {
			t.Fatalf("CheckAddr and Control differ about %v", at)
		}
		if err != nil {
			if !errors.Is(err, guard.ErrBlocked) {
				t.Fatal(err)
			}
			return
		}
		if a.Is6() && zone != "" {
			t.Fatalf("%v has a zone", a.WithZone(zone))
		}
		plain := a.Unmap()
		if !plain.IsGlobalUnicast() || plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified() {
			t.Fatalf("%v is not public", a)
		}
		if plain.Is4() {
			for _, dressed := range [][16]byte{plain.As16(), nat64(plain), sixTo4(plain)} {
				if err := (guard.Policy{}).CheckAddr(netip.AddrFrom16(dressed)); err != nil {
					t.Fatalf("%v passes, and not as %v", plain, netip.AddrFrom16(dressed))
				}
			}
		}
	})
}

func nat64(a netip.Addr) (b [16]byte) {
	copy(b[:], []byte{0, 0x64, 0xff, 0x9b})
	copy(b[12:], a.AsSlice())
	return b
}

func sixTo4(a netip.Addr) (b [16]byte) {
	b[0], b[1], b[15] = 0x20, 0x02, 1
	copy(b[2:], a.AsSlice())
	return b
}

var errDialled = errors.New("dialled")

// Where a URL leads that passes at registration: a literal is dialled as what it was
// checked as, and a name is one to the Go resolver and to the C library's, which take
// shortened, octal and hexadecimal numbers for addresses. All names lead to loopback
// here, and nobody gets there.
func FuzzDialOfRegisteredURL(f *testing.F) {
	for _, u := range ssrftest.URLs {
		f.Add(u.URL)
		f.Add(strings.Replace(u.URL, "http:", "https:", 1))
	}
	for _, s := range []string{"https://8.8.8.8/", "https://[::ffff:8.8.8.8]:8443/", "https://example.com/", "https://0x7f.1.example/", "https://1.2.3.4.nip.io/", "https://127.1._/"} {
		f.Add(s)
	}
	resolver := (&ssrftest.Zone{Otherwise: ssrftest.Addresses("127.0.0.1")}).Resolver()
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := guard.Policy{}.CheckURL(raw)
		if err != nil {
			return
		}
		host := u.Hostname()
		literal, notLiteral := netip.ParseAddr(host)
		if a, ok := inetAton(host); ok && notLiteral != nil {
			t.Fatalf("%q is %v to a C library", raw, a)
		}
		dialer := net.Dialer{Resolver: resolver, ControlContext: func(ctx context.Context, network, address string, c syscall.RawConn) error {
			if err := (guard.Policy{}).Control(ctx, network, address, c); err != nil {
				return err
			}
			if notLiteral != nil || netip.MustParseAddrPort(address).Addr().Unmap() != literal {
				t.Fatalf("%q leads to %s", raw, address)
			}
			return errDialled
		}}
		_, err = dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(host, portOf(u)))
		if notLiteral == nil && !errors.Is(err, errDialled) {
			t.Fatalf("%q passes, and is not dialled: %v", raw, err)
		}
	})
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "443"
}

// inetAton reads as inet_aton(3) does: one to four parts, decimal, octal behind 0 or
// hexadecimal behind 0x, of which the last fills what is left.
func inetAton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		if part == "" || strings.ContainsAny(part, "_+-bBoO") && !strings.HasPrefix(strings.ToLower(part), "0x") {
			return netip.Addr{}, false
		}
		n, err := strconv.ParseUint(part, 0, 64)
		if err != nil || strings.Contains(part, "_") {
			return netip.Addr{}, false
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if n >= 1<<bits {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
