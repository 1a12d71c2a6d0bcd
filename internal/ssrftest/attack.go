package ssrftest

import (
	"net/netip"
	"testing"
)

// Attack is a name that somebody lets resolve to an address that must not be called.
type Attack struct {
	Number  int // in the list of known attacks, after those by a URL alone
	About   string
	Name    string
	Deny    []netip.Prefix // the addresses that the sender's operator forbids as well
	Public  string         // the prefix of the addresses that must be called; "": none may be
	Outcome string         // the class of the attempt's error if none may be called
	Own     bool           // only in a network of the test's own: see InOwnNetwork

	answer []netip.Addr // of the name server; nil: see NewZone
}

// Addresses that are public: an attack's connection to one of them is let through.
const (
	Google     = "8.8.8.8"
	quad9      = "9.9.9.9"
	cloudflare = "2606:4700:4700::1111"
)

// The classes of attempts that reach nobody.
const (
	blocked = "blocked"
	noName  = "dns"
	timeout = "timeout"
)

// Attacks are the names that NewZone resolves so.
var Attacks = []Attack{
	{Number: 89, About: "A is loopback", Name: "a.example.com", answer: Addresses("127.0.0.1"), Outcome: blocked},
	{Number: 90, About: "A is metadata", Name: "b.example.com", answer: Addresses("169.254.169.254"), Outcome: blocked},
	{Number: 92, About: "public, then private", Name: "c.example.com", answer: Addresses(Google, "10.0.0.1"), Public: Google + "/32"},
	{Number: 92, About: "private, then public", Name: "d.example.com", answer: Addresses("10.0.0.1", Google), Public: Google + "/32"},
	{Number: 92, About: "between privates", Name: "e.example.com", answer: Addresses("127.0.0.1", Google, "10.0.0.1"), Public: Google + "/32"},
	{Number: 93, About: "AAAA is loopback", Name: "f.example.com", answer: Addresses(Google, "::1"), Public: Google + "/32"},
	{Number: 93, About: "AAAA is metadata", Name: "g.example.com", answer: Addresses(Google, "fd00:ec2::254"), Public: Google + "/32"},
	{Number: 93, About: "AAAA is mapped", Name: "h.example.com", answer: Addresses(Google, "::ffff:10.0.0.1"), Public: Google + "/32"},
	{Number: 93, About: "A is loopback, AAAA public", Name: "i.example.com", answer: Addresses("127.0.0.1", cloudflare), Public: cloudflare + "/128"},
	{Number: 94, About: "a chain of aliases to metadata", Name: "chain.example.com", Outcome: blocked},
	{Number: 94, About: "an alias to this machine", Name: "local.example.com", Outcome: blocked},
	{Number: 95, About: "AAAA by NAT64", Name: "j.example.com", answer: Addresses("64:ff9b::a9fe:a9fe"), Outcome: blocked},
	{Number: 95, About: "AAAA by 6to4", Name: "k.example.com", answer: Addresses("2002:a9fe:a9fe::1"), Outcome: blocked},
	{Number: 95, About: "AAAA by Teredo", Name: "l.example.com", answer: Addresses("2001:0:7f00:1::"), Outcome: blocked},
	{Number: 95, About: "AAAA compatible", Name: "m.example.com", answer: Addresses("::7f00:1"), Outcome: blocked},
	{Number: 95, About: "AAAA by ISATAP", Name: "n.example.com", answer: Addresses("2600::5efe:10.0.0.1"), Outcome: blocked},
	{Number: 96, About: "no addresses", Name: "none.example.com", answer: Addresses(), Outcome: noName},
	{Number: 96, About: "SERVFAIL", Name: "broken.example.com", Outcome: noName},
	{Number: 96, About: "1000 private answers", Name: "o.example.com", answer: thousand(10, 1), Outcome: blocked},
	{Number: 96, About: "1000 public answers", Name: "p.example.com", answer: thousand(11, 1), Public: "11.1.0.0/16"},
	{Number: 96, About: "no answer", Name: "silent.example.com", Outcome: timeout},
	{Number: 97, About: "a single label", Name: "db", answer: Addresses("127.0.0.1"), Outcome: blocked},
	{Number: 97, About: "a single label, by a search domain", Name: "db2", Outcome: blocked},
	{Number: 98, About: "the machine's hosts file", Name: "intranet.example.com", Outcome: blocked, Own: true},
	{Number: 98, About: "the machine's own name", Name: "localhost", Outcome: blocked},
	{Number: 99, About: "Azure's host", Name: "q.example.com", answer: Addresses("168.63.129.16"), Outcome: blocked},
	{Number: 100, About: "public and denied", Name: "r.example.com", answer: Addresses(Google), Deny: one(Google), Outcome: blocked},
	{Number: 100, About: "denied among others", Name: "s.example.com", answer: Addresses(Google, quad9), Deny: one(Google), Public: quad9 + "/32"},
}

// one returns the network of one IPv4 address.
func one(address string) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(address + "/32")}
}

// thousand returns addresses in a network of 16 bits.
func thousand(a, b byte) []netip.Addr {
	list := make([]netip.Addr, 1000)
	for i := range list {
		list[i] = netip.AddrFrom4([4]byte{a, b, byte(i / 250), byte(i%250 + 1)})
	}
	return list
}

// NewZone answers as the attacks ask, and leads every other name to loopback.
func NewZone() *Zone {
	z := &Zone{
		Answers: map[string][][]netip.Addr{
			"metadata.google.internal": {Addresses("169.254.169.254")},
			"db2.corp.internal":        {Addresses("10.0.0.5")},
			// A name without addresses is looked for under the search domain, too.
			"none.example.com.corp.internal": {Addresses()},
			"rebound.example.com":            {Addresses(Google), Addresses("127.0.0.1")},
		},
		Alias: map[string]string{
			"chain.example.com": "chain2.example.com", "chain2.example.com": "metadata.google.internal",
			"local.example.com": "localhost",
		},
		Broken:    map[string]bool{"broken.example.com": true, "broken.example.com.corp.internal": true},
		Silent:    map[string]bool{"silent.example.com": true},
		Otherwise: Addresses("127.0.0.1"),
	}
	for _, a := range Attacks {
		if a.answer != nil {
			z.Answers[a.Name] = [][]netip.Addr{a.answer}
		}
	}
	return z
}

// Check fails the test unless an attempt that ended in class has called the addresses that
// it must, and no other.
func (a *Attack) Check(t *testing.T, called []string, class string) {
	t.Helper()
	if a.Public == "" {
		if len(called) > 0 || class != a.Outcome {
			t.Fatalf("%v were called, and the attempt's class is %q: it must be %q, and nothing may be called", called, class, a.Outcome)
		}
		return
	}
	if len(called) == 0 || class == blocked {
		t.Fatalf("%v were called, and the attempt's class is %q: an address that may be called must be, and the class tells how that has ended", called, class)
	}
	if len(called) > 8 {
		t.Fatalf("%d addresses were called: a name is no list of targets", len(called))
	}
	for _, address := range called {
		if !netip.MustParsePrefix(a.Public).Contains(netip.MustParseAddrPort(address).Addr()) {
			t.Fatalf("%s was called", address)
		}
	}
}
