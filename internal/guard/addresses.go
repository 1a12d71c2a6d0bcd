package guard

import "net/netip"

// special4 is the whole IANA IPv4 Special-Purpose Address Registry (RFC 6890, RFC 8190;
// https://www.iana.org/assignments/iana-ipv4-special-registry), and multicast (RFC
// 5771). The few entries of the registry that are globally reachable are anycast
// services, which receive no deliveries.
var special4 = prefixes(
	"0.0.0.0/8",       // this network, RFC 791
	"10.0.0.0/8",      // private use, RFC 1918
	"100.64.0.0/10",   // shared address space, RFC 6598
	"127.0.0.0/8",     // loopback, RFC 1122
	"169.254.0.0/16",  // link local, RFC 3927
	"172.16.0.0/12",   // private use, RFC 1918
	"192.0.0.0/24",    // IETF protocol assignments, RFC 6890
	"192.0.2.0/24",    // documentation, RFC 5737
	"192.31.196.0/24", // AS112-v4, RFC 7535
	"192.52.193.0/24", // AMT, RFC 7450
	"192.88.99.0/24",  // 6to4 relay anycast, deprecated by RFC 7526
	"192.168.0.0/16",  // private use, RFC 1918
	"192.175.48.0/24", // direct delegation AS112, RFC 7534
	"198.18.0.0/15",   // benchmarking, RFC 2544
	"198.51.100.0/24", // documentation, RFC 5737
	"203.0.113.0/24",  // documentation, RFC 5737
	"224.0.0.0/4",     // multicast, RFC 5771
	"240.0.0.0/4",     // reserved, RFC 1112; limited broadcast, RFC 919
)

// metadata has the addresses at which clouds tell a machine about itself, its
// credentials included. A name such as metadata.google.internal resolves to one of
// them. No subscriber is there, so they stay closed if private networks are open. The
// sources are the clouds' own documents, with the titles given here.
var metadata = prefixes(
	"169.254.169.254/32",     // AWS "Instance metadata", Google Cloud, Azure "Instance Metadata Service", OpenStack and most others
	"fd00:ec2::254/128",      // AWS "Instance metadata", over IPv6
	"169.254.170.2/32",       // AWS "Amazon ECS task metadata endpoint" and "Task IAM role"
	"169.254.170.23/32",      // AWS "EKS Pod Identity"
	"fd00:ec2::23/128",       // AWS "EKS Pod Identity", over IPv6
	"168.63.129.16/32",       // Azure "What is IP address 168.63.129.16?", its WireServer, which looks public
	"fd20:ce::254/128",       // Google Cloud "About VM metadata", over IPv6
	"169.254.169.252/32",     // Google Kubernetes Engine "Workload Identity", the server on the node
	"100.100.100.200/32",     // Alibaba Cloud "Instance metadata"
	"169.254.0.23/32",        // Tencent Cloud "Instance metadata", metadata.tencentyun.com
	"192.0.0.192/32",         // Oracle Cloud Infrastructure Classic "Instance metadata"
	"fd00:c1::a9fe:a9fe/128", // Oracle Cloud Infrastructure "Instance metadata", over IPv6
	"169.254.42.42/32",       // Scaleway "Instance metadata"
	"fd00:42::42/128",        // Scaleway, over IPv6
	"fd00:a9fe:a9fe::1/128",  // Akamai Linode "Metadata service", over IPv6
	"fe80::a9fe:a9fe/128",    // OpenStack "Metadata service", over IPv6
)

// global6 is the part of IPv6 that is assigned as global unicast (RFC 4291 section 2.4;
// https://www.iana.org/assignments/ipv6-unicast-address-assignments). Addresses outside
// of it are refused without being listed: loopback, unspecified, IPv4-compatible
// (::/96), IPv4-translated (::ffff:0:0:0/96), NAT64 by a local prefix (64:ff9b:1::/48,
// RFC 8215), discard-only (100::/64), SRv6 SIDs (5f00::/16), unique local, link local,
// site local, multicast.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 has the entries of the IANA IPv6 Special-Purpose Address Registry (RFC 6890,
// RFC 8190; https://www.iana.org/assignments/iana-ipv6-special-registry) within
// global6, except 6to4, which is judged by the address that it embeds.
var special6 = prefixes(
	"2001::/23",         // IETF protocol assignments, RFC 2928: Teredo, benchmarking, ORCHID …
	"2001:db8::/32",     // documentation, RFC 3849
	"2620:4f:8000::/48", // direct delegation AS112, RFC 7534
	"3fff::/20",         // documentation, RFC 9637
)

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052 section 2.1
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056 section 2

	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// lastFour are the prefixes of addresses that end in the IPv4 address to which they
// lead. Only NAT64 leads to a public one: the others are not global unicast.
var lastFour = []netip.Prefix{
	nat64,
	netip.MustParsePrefix("64:ff9b:1::/48"),  // NAT64 by a local prefix of 96 bits, RFC 8215
	netip.MustParsePrefix("::ffff:0:0:0/96"), // IPv4-translated, RFC 2765 section 2.1
	netip.MustParsePrefix("::/96"),           // IPv4-compatible, RFC 4291 section 2.5.5.1
}

// routable tells whether an address, unmapped and without a zone, is itself globally
// routable unicast. It does not judge the addresses that it leads to.
func routable(a netip.Addr) bool {
	if a.Is4() {
		return !covered(special4, a)
	}
	return nat64.Contains(a) || global6.Contains(a) && !covered(special6, a)
}

// leadsTo returns the other addresses at which packets to an address may end. By an IPv6
// address's prefix (lastFour, 6to4) and by its interface identifier (ISATAP, RFC 5214
// section 6.1) that is an IPv4 address. The unspecified addresses, as destinations, are this
// machine's loopback on Linux and others. An address that does not exist is the invalid Addr.
func leadsTo(a netip.Addr) (found [3]netip.Addr) {
	if a.IsUnspecified() {
		found[1], found[2] = loopback4, netip.IPv6Loopback()
	}
	if !a.Is6() {
		return found
	}
	b := a.As16()
	switch {
	case covered(lastFour, a):
		found[0] = netip.AddrFrom4([4]byte(b[12:16]))
	case sixTo4.Contains(a):
		found[0] = netip.AddrFrom4([4]byte(b[2:6]))
	}
	// The universal bit of the identifier may be set, the group bit not.
	if b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		found[1] = netip.AddrFrom4([4]byte(b[12:16]))
	}
	return found
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParsePrefix(s)
	}
	return list
}
