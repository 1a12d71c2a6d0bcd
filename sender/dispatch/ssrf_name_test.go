package dispatch_test

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// testNames posts to the attacks' names, directly and through a proxy, which is asked for
// addresses.
func (o outside) testNames(t *testing.T) {
	proxy := o.newProxy(t)
	for _, a := range ssrftest.Attacks {
		if a.Own && !o.Real {
			continue
		}
		cfg := dispatch.Config{Network: sender.Network{Deny: a.Deny}, Timeout: 10 * time.Second, Proxies: map[string]*url.URL{"eu": proxy}}
		if a.Outcome == string(sender.ClassTimeout) {
			cfg.Timeout = 100 * time.Millisecond
		}
		t.Run(fmt.Sprintf("%d %s", a.Number, a.About), func(t *testing.T) {
			result, made := o.attempt(t, "http://"+a.Name+"/", cfg, sender.Settings{})
			require.True(t, made)
			a.Check(t, o.Take(), string(result.Class))
		})
		t.Run(fmt.Sprintf("%d %s, by a proxy", a.Number, a.About), func(t *testing.T) {
			result, made := o.attempt(t, "http://"+a.Name+"/", cfg, sender.Settings{Proxy: "eu"})
			require.True(t, made)
			a.Check(t, o.Take(), string(result.Class))
		})
	}
}

// testRebinding lets a name resolve to loopback after it was called once.
func (o outside) testRebinding(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://elsewhere.example/")
	var classes []sender.Class
	cfg := dispatch.Config{Logger: quiet(), Hooks: dispatch.Hooks{AttemptEnd: func(_ context.Context, _ *dispatch.Claimed, r *dispatch.Result) {
		classes = append(classes, r.Class)
	}}}
	d, err := dispatch.New(misled{b.Store, "http://rebound.example.com/"}, b.Keys, &cfg)
	require.NoError(t, err)
	d.Dial(o.Resolver, o.Watch)
	for range 2 { // the second attempt may find the first one's connection
		b.Publish("sub_a")
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	d.CloseIdle()
	b.Publish("sub_a")
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{ssrftest.Google + ":80"}, o.Take(), "the first look-up's answer, once")
	require.Len(t, classes, 3)
	require.NotEqual(t, sender.ClassBlocked, classes[0])
	require.Equal(t, sender.ClassBlocked, classes[2])
}

// A host has many addresses of a family that does not work here, and one of the other.
func TestOtherFamilyIsTriedBehindManyAddresses(t *testing.T) {
	ep := sendertest.NewEndpoint(t) // at 127.0.0.1 alone
	port := ep.URL()[strings.LastIndex(ep.URL(), ":"):]
	for _, times := range []int{1, 8, 20} {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://host.example.com"+port+"/")
		b.Publish("sub_a")
		d := b.Dispatcher(dispatch.Config{})
		addresses := strings.Fields(strings.Repeat("::1 ", times) + "127.0.0.1")
		zone := &ssrftest.Zone{Answers: map[string][][]netip.Addr{"host.example.com": {ssrftest.Addresses(addresses...)}}}
		d.Dial(zone.Resolver(), func(string) error { return nil })
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		a := b.Delivery().Attempts[0]
		require.Equal(t, sender.ClassNone, a.Class, "%d: %s", times, a.Error)
		d.CloseIdle()
	}
}
