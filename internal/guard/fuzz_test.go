package guard_test

import (
	"bytes"
	"context"
	"encoding/hex"
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

// An address passes if and only if its bytes are those of a public address, in each of
// its forms, and never with a zone.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"8.8.8.8", "127.0.0.1", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "64:ff9b::808:808", "64:ff9b::a9fe:a9fe",
		"2002:808:808::1", "2002:a9fe:a9fe::1", "2600::5efe:10.0.0.1", "2600::1", "fe80::1%lo", "fd00:ec2::254", "2001:db8::1", "168.63.129.16", "100.64.0.1",
		"100.127.255.255", "100.128.0.0", "172.31.255.255", "172.32.0.0", "2002:ac1f:1::1", "2002:6440:1::", "2600::200:5efe:172.16.0.1", "2600::100:5efe:172.16.0.1",
		"2001:1ff::", "2001:200::", "2001:db7::", "2001:db9::", "3fff:fff::", "3fff:1000::", "2620:4f:8000::", "2620:4f:8001::", "64:ff9b:1::808:808", "4000::",
		"169.254.169.253", "169.254.170.23", "::ffff:0:a9fe:a9fe", "64:ff9b:1:2:3:4:6464:64c8", "::a9fe:2a2a", "2600::5efe:169.254.0.23", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
		"198.19.0.0", "198.20.0.0", "192.0.0.192", "192.0.1.0", "223.255.255.255", "224.0.0.1", "232.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "2001:db8:ffff::1",
	} {
		b := netip.MustParseAddr(s).As16()
		f.Add(b[:], netip.MustParseAddr(s).Zone())
	}
	f.Fuzz(func(t *testing.T, raw []byte, zone string) {
		var b [16]byte
		copy(b[:], raw)
		a := netip.AddrFrom16(b)
		if len(raw) == 4 {
			a = netip.AddrFrom4([4]byte(raw))
		}
		err := guard.Policy{}.CheckAddr(a.WithZone(zone))
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		// An address with a port is judged like the address alone.
		if at := netip.AddrPortFrom(a.WithZone(zone), 443); !strings.ContainsAny(zone, "]%") && (guard.Policy{}.Control(t.Context(), network, at.String(), nil) == nil) != (err == nil) {
			t.Fatalf("CheckAddr and Control differ about %v", at)
		}
		if err != nil && !errors.Is(err, guard.ErrBlocked) {
			t.Fatal(err)
		}
		if public := publicBytes(a.As16()) && (a.Is4() || zone == ""); public != (err == nil) {
			t.Fatalf("%v is public: %v, and CheckAddr says: %v", a.WithZone(zone), public, err)
		}
		closed := metadataBytes(a.As16()) || a.Is6() && zone != ""
		if err := (guard.Policy{AllowPrivateNetworks: true}).CheckAddr(a.WithZone(zone)); closed != (err != nil) {
			t.Fatalf("%v is to stay closed: %v, and CheckAddr says where private networks are open: %v", a.WithZone(zone), closed, err)
		}
		plain := a.Unmap()
		if err != nil {
			return
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

// publicBytes states the rule again, in the numbers of RFC 6890 and of the IANA
// registries, without net/netip.
func publicBytes(b [16]byte) bool {
	last4 := [4]byte(b[12:])
	switch head := [12]byte(b[:12]); {
	case head == [12]byte{10: 0xff, 11: 0xff}: // IPv4
		return public4(last4)
	case head == [12]byte{1: 0x64, 2: 0xff, 3: 0x9b}: // NAT64
		return public4(last4)
	case b[0] == 0x20 && b[1] == 0x02 && !public4([4]byte(b[2:6])), // 6to4
		b[0]&0xe0 != 0x20, // not given out
		b[0] == 0x20 && b[1] == 0x01 && b[2] < 2,
		b[0] == 0x20 && b[1] == 0x01 && b[2] == 0x0d && b[3] == 0xb8,
		b[0] == 0x26 && b[1] == 0x20 && b[2] == 0 && b[3] == 0x4f && b[4] == 0x80 && b[5] == 0,
		b[0] == 0x3f && b[1] == 0xff && b[2] < 0x10:
		return false
	}
	isatap := (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	return !isatap || public4(last4)
}

func public4(b [4]byte) bool {
	three := [3]byte(b[:3])
	switch {
	case b[0] == 0, b[0] == 10, b[0] == 127, b[0] >= 224,
		b[0] == 100 && b[1] >= 64 && b[1] < 128,
		b[0] == 169 && b[1] == 254,
		b[0] == 172 && b[1] >= 16 && b[1] < 32,
		b[0] == 192 && b[1] == 168,
		b[0] == 198 && (b[1] == 18 || b[1] == 19),
		b == [4]byte{168, 63, 129, 16}:
		return false
	}
	for _, range24 := range [][3]byte{{192, 0, 0}, {192, 0, 2}, {192, 31, 196}, {192, 52, 193}, {192, 88, 99}, {192, 175, 48}, {198, 51, 100}, {203, 0, 113}} {
		if three == range24 {
			return false
		}
	}
	return true
}

// metadataBytes states in the same way which addresses stay closed if private networks
// are open.
func metadataBytes(b [16]byte) bool {
	last4, zeros := [4]byte(b[12:]), func(from, to int) bool { return len(bytes.Trim(b[from:to], "\x00")) == 0 }
	switch {
	case zeros(0, 12), // IPv4-compatible
		zeros(0, 10) && b[10] == 0xff && b[11] == 0xff,                                      // IPv4-mapped
		zeros(0, 8) && b[8] == 0xff && b[9] == 0xff && zeros(10, 12),                        // IPv4-translated
		b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b && zeros(4, 12),           // NAT64
		b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b && b[4] == 0 && b[5] == 1, // NAT64 by a local prefix
		(b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:             // ISATAP
		if metadata4(last4) {
			return true
		}
	}
	if b[0] == 0x20 && b[1] == 0x02 && metadata4([4]byte(b[2:6])) { // 6to4
		return true
	}
	switch hex.EncodeToString(b[:]) {
	case "fd000ec2000000000000000000000254", "fd000ec2000000000000000000000023", "fd2000ce000000000000000000000254", "fd0000c10000000000000000a9fea9fe",
		"fd000042000000000000000000000042", "fd00a9fea9fe00000000000000000001", "fe8000000000000000000000a9fea9fe":
		return true
	}
	return false
}

func metadata4(b [4]byte) bool {
	switch b {
	case [4]byte{169, 254, 169, 254}, [4]byte{169, 254, 169, 252}, [4]byte{169, 254, 170, 2}, [4]byte{169, 254, 170, 23}, [4]byte{169, 254, 0, 23},
		[4]byte{169, 254, 42, 42}, [4]byte{100, 100, 100, 200}, [4]byte{192, 0, 0, 192}, [4]byte{168, 63, 129, 16}:
		return true
	}
	return false
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

// A URL that passes at registration is dialled as it was checked. A literal is dialled as
// the address that was checked. A name is a name to the Go resolver and to the C
// library's, which take shortened, octal and hexadecimal numbers for addresses. All names
// lead to loopback here, and no dial gets there.
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

// inetAton reads like inet_aton(3): one to four parts, decimal, octal after 0 or
// hexadecimal after 0x. The last part fills the remaining bytes.
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
