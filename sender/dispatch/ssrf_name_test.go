package dispatch_test

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// attack is a name that somebody lets resolve to what must not be called.
type attack struct {
	number  int // in the list of known attacks, after those by a URL alone
	about   string
	name    string
	answer  []netip.Addr
	network sender.Network
	public  string // the prefix of what is to be called; "": nothing is
	outcome sender.Class
	own     bool // only where the machine's files are the test's own
}

func one(texts ...string) []netip.Addr { return ssrftest.Addresses(texts...) }

func denied(prefix string) sender.Network {
	return sender.Network{Deny: []netip.Prefix{netip.MustParsePrefix(prefix)}}
}

// thousand returns addresses in a network of 16 bits.
func thousand(a, b byte) []netip.Addr {
	list := make([]netip.Addr, 1000)
	for i := range list {
		list[i] = netip.AddrFrom4([4]byte{a, b, byte(i / 250), byte(i%250 + 1)})
	}
	return list
}

const google, quad9, cloudflare6 = "8.8.8.8", "9.9.9.9", "2606:4700:4700::1111"

var attacks = []attack{
	{number: 89, about: "A is loopback", name: "a.example.com", answer: one("127.0.0.1"), outcome: sender.ClassBlocked},
	{number: 90, about: "A is metadata", name: "b.example.com", answer: one("169.254.169.254"), outcome: sender.ClassBlocked},
	{number: 92, about: "public, then private", name: "c.example.com", answer: one(google, "10.0.0.1"), public: google + "/32"},
	{number: 92, about: "private, then public", name: "d.example.com", answer: one("10.0.0.1", google), public: google + "/32"},
	{number: 92, about: "between privates", name: "e.example.com", answer: one("127.0.0.1", google, "10.0.0.1"), public: google + "/32"},
	{number: 93, about: "AAAA is loopback", name: "f.example.com", answer: one(google, "::1"), public: google + "/32"},
	{number: 93, about: "AAAA is metadata", name: "g.example.com", answer: one(google, "fd00:ec2::254"), public: google + "/32"},
	{number: 93, about: "AAAA is mapped", name: "h.example.com", answer: one(google, "::ffff:10.0.0.1"), public: google + "/32"},
	{number: 93, about: "A is loopback, AAAA public", name: "i.example.com", answer: one("127.0.0.1", cloudflare6), public: cloudflare6 + "/128"},
	{number: 94, about: "a chain of aliases to metadata", name: "chain.example.com", outcome: sender.ClassBlocked},
	{number: 94, about: "an alias to this machine", name: "local.example.com", outcome: sender.ClassBlocked},
	{number: 95, about: "AAAA by NAT64", name: "j.example.com", answer: one("64:ff9b::a9fe:a9fe"), outcome: sender.ClassBlocked},
	{number: 95, about: "AAAA by 6to4", name: "k.example.com", answer: one("2002:a9fe:a9fe::1"), outcome: sender.ClassBlocked},
	{number: 95, about: "AAAA by Teredo", name: "l.example.com", answer: one("2001:0:7f00:1::"), outcome: sender.ClassBlocked},
	{number: 95, about: "AAAA compatible", name: "m.example.com", answer: one("::7f00:1"), outcome: sender.ClassBlocked},
	{number: 95, about: "AAAA by ISATAP", name: "n.example.com", answer: one("2600::5efe:10.0.0.1"), outcome: sender.ClassBlocked},
	{number: 96, about: "no addresses", name: "none.example.com", answer: one(), outcome: sender.ClassDNS},
	{number: 96, about: "SERVFAIL", name: "broken.example.com", outcome: sender.ClassDNS},
	{number: 96, about: "1000 private answers", name: "o.example.com", answer: thousand(10, 1), outcome: sender.ClassBlocked},
	{number: 96, about: "1000 public answers", name: "p.example.com", answer: thousand(11, 1), public: "11.1.0.0/16"},
	{number: 96, about: "no answer", name: "silent.example.com", outcome: sender.ClassTimeout},
	{number: 97, about: "a single label", name: "db", answer: one("127.0.0.1"), outcome: sender.ClassBlocked},
	{number: 97, about: "a single label, by a search domain", name: "db2", outcome: sender.ClassBlocked},
	{number: 98, about: "the machine's hosts file", name: "intranet.example.com", outcome: sender.ClassBlocked, own: true},
	{number: 98, about: "the machine's own name", name: "localhost", outcome: sender.ClassBlocked},
	{number: 99, about: "Azure's host", name: "q.example.com", answer: one("168.63.129.16"), outcome: sender.ClassBlocked},
	{number: 100, about: "public and denied", name: "r.example.com", answer: one(google), network: denied(google + "/32"), outcome: sender.ClassBlocked},
	{number: 100, about: "denied among others", name: "s.example.com", answer: one(google, quad9), network: denied(google + "/32"), public: quad9 + "/32"},
}

// newZone answers as the attacks ask, and leads every other name to loopback.
func newZone() *ssrftest.Zone {
	z := &ssrftest.Zone{
		Answers: map[string][][]netip.Addr{
			"metadata.google.internal": {one("169.254.169.254")},
			"db2.corp.internal":        {one("10.0.0.5")},
			// A name without addresses is looked for under the search domain, too.
			"none.example.com.corp.internal": {one()},
			"rebound.example.com":            {one(google), one("127.0.0.1")},
		},
		Alias: map[string]string{
			"chain.example.com": "chain2.example.com", "chain2.example.com": "metadata.google.internal",
			"local.example.com": "localhost",
		},
		Broken:    map[string]bool{"broken.example.com": true, "broken.example.com.corp.internal": true},
		Silent:    map[string]bool{"silent.example.com": true},
		Otherwise: one("127.0.0.1"),
	}
	for _, a := range attacks {
		if a.answer != nil {
			z.Answers[a.name] = [][]netip.Addr{a.answer}
		}
	}
	return z
}

// testNames posts to the attacks' names by every way that a connection is made: the
// dispatcher's own, a challenge's, and a proxy's, which is asked for addresses.
func (o *outside) testNames(t *testing.T) {
	proxy := o.newProxy(t)
	for _, a := range attacks {
		if a.own && !o.real {
			continue
		}
		check := func(t *testing.T, class sender.Class) {
			t.Helper()
			arrived := o.take()
			if a.public == "" {
				require.Empty(t, arrived)
				require.Equal(t, a.outcome, class)
				return
			}
			require.NotEmpty(t, arrived, "what may be called is called, and not %q", class)
			require.LessOrEqual(t, len(arrived), 8, "a name is no list of targets")
			for _, address := range arrived {
				ap := netip.MustParseAddrPort(address)
				require.True(t, netip.MustParsePrefix(a.public).Contains(ap.Addr()), "%s was called", ap)
			}
		}
		cfg := dispatch.Config{Network: a.network, Timeout: 10 * time.Second, Proxies: map[string]*url.URL{"eu": proxy}}
		if a.outcome == sender.ClassTimeout {
			cfg.Timeout = 100 * time.Millisecond
		}
		t.Run(fmt.Sprintf("%d %s", a.number, a.about), func(t *testing.T) {
			result, made := o.attempt(t, "http://"+a.name+"/", cfg, sender.Settings{})
			require.True(t, made)
			check(t, result.Class)
		})
		t.Run(fmt.Sprintf("%d %s, by a proxy", a.number, a.about), func(t *testing.T) {
			result, made := o.attempt(t, "http://"+a.name+"/", cfg, sender.Settings{Proxy: "eu"})
			require.True(t, made)
			check(t, result.Class)
		})
	}
}

// testRebinding lets a name resolve to loopback after it was called once.
func (o *outside) testRebinding(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://elsewhere.example/")
	var classes []sender.Class
	cfg := dispatch.Config{Logger: quiet(), Hooks: dispatch.Hooks{AttemptEnd: func(_ context.Context, _ *dispatch.Claimed, r *dispatch.Result) {
		classes = append(classes, r.Class)
	}}}
	d, err := dispatch.New(misled{b.Store, "http://rebound.example.com/"}, b.Keys, &cfg)
	require.NoError(t, err)
	d.Dial(o.resolver, o.watch)
	for range 2 { // the second one may find the first one's connection
		b.Publish("sub_a")
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	d.CloseIdle()
	b.Publish("sub_a")
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{google + ":80"}, o.take(), "the first look-up's answer, once")
	require.Len(t, classes, 3)
	require.NotEqual(t, sender.ClassBlocked, classes[0])
	require.Equal(t, sender.ClassBlocked, classes[2])
}
