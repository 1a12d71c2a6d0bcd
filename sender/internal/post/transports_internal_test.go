package post

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

func TestTransportsUsedLastAreKept(t *testing.T) {
	ts := newTransports(Config{Proxies: map[string]*url.URL{
		"a": {Scheme: "http", Host: "a"}, "b": {Scheme: "http", Host: "b"}, "c": {Scheme: "http", Host: "c"},
	}})
	ts.most = 2
	target := &url.URL{Scheme: "http", Host: "target"}
	of := func(proxy string) *dedicatedTransport {
		t.Helper()
		transport, own, err := ts.of(&Request{Proxy: proxy, URL: target}, nil)
		require.NoError(t, err)
		require.Same(t, own, transport)
		return own
	}
	a, b := of("a"), of("b")
	require.NotSame(t, a, b)
	require.Same(t, a, of("a"))
	c := of("c")
	require.True(t, b.evicted, "the one that was not used for longest goes")
	require.Same(t, a, of("a"))
	require.Same(t, c, of("c"))
	require.NotSame(t, b, of("b"), "and is made anew")
	require.Len(t, ts.own, 2)
	require.Equal(t, 2, ts.used.Len())
	require.Equal(t, 3, a.attempts)

	for _, none := range []Request{{URL: target}, {URL: target, Header: http.Header{"X-A": {"1"}}}} {
		transport, own, err := ts.of(&none, nil)
		require.NoError(t, err)
		require.Nil(t, own)
		require.Same(t, ts.plain, transport)
	}
}

// Attempts with different certificates share no connection: those of other subscriptions, and
// those of one whose certificate was replaced.
func TestCertificatesShareNoTransport(t *testing.T) {
	ts := newTransports(Config{})
	of := func(subscription, sealed string) *dedicatedTransport {
		t.Helper()
		opened := &tls.Certificate{Certificate: [][]byte{[]byte(subscription + " " + sealed)}}
		_, own, err := ts.of(&Request{Subscription: subscription, SealedCertificate: []byte(sealed), URL: &url.URL{Scheme: "https", Host: "target"}},
			func() (*tls.Certificate, error) { return opened, nil })
		require.NoError(t, err)
		given, err := own.TLS.GetClientCertificate(nil)
		require.NoError(t, err)
		require.Equal(t, subscription+" "+sealed, string(given.Certificate[0]))
		return own
	}
	a := of("wsub_a", "one")
	require.Same(t, a, of("wsub_a", "one"))
	require.NotSame(t, a, of("wsub_a", "two"))
	require.NotSame(t, a, of("wsub_b", "one"))
}

// A transport that is not kept any more leaves no connection: it may be idle then, or end its
// last attempt later.
func TestEvictedTransportClosesItsConnections(t *testing.T) {
	closed := make(chan struct{}, 10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Keep-Alive", "timeout=60") }))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	srv.Start()
	defer srv.Close()
	proxy := httptest.NewServer(http.HandlerFunc(tunnelTo))
	defer proxy.Close()
	to, err := url.Parse(srv.URL)
	require.NoError(t, err)
	through, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	p := New(Config{
		Policy: guard.Policy{AllowPrivateNetworks: true}, Timeout: 5 * time.Second, Places: 4, Proxies: map[string]*url.URL{"eu": through, "us": through},
		Schemes: signing.DefaultSchemes(), Now: time.Now,
	})
	defer p.CloseIdle()
	p.transports.most = 1
	prepare := func(proxy string) Exchange {
		x, err := p.Prepare(&Request{URL: to, Event: "evt_1", Attempt: 1, At: time.Now(), Body: []byte("{}"), Keyring: keyring, Proxy: proxy}, nil)
		require.NoError(t, err)
		return x
	}
	send := func(x Exchange) { require.Equal(t, sender.ClassNone, x.Send(t.Context(), nil).Class) }
	send(prepare("eu"))
	send(prepare("us")) // the first one goes, which is idle
	<-closed
	later := prepare("us")
	send(prepare("eu"))
	send(later)
	<-closed
	require.Empty(t, closed)
}

// panicking is a scheme that panics when it signs.
type panicking struct{ signing.Scheme }

func (panicking) Sign(http.Header, string, time.Time, []byte, *signing.Keyring) error {
	panic("the scheme is broken")
}

// A scheme that panics keeps neither a transport nor one of a proxy's few places.
func TestPanicOfASchemeLosesNoTransport(t *testing.T) {
	p := New(Config{Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: "proxy"}}, Schemes: []signing.Scheme{panicking{}}, Now: time.Now})
	require.Panics(t, func() {
		_, _ = p.Prepare(&Request{Proxy: "eu", URL: &url.URL{Scheme: "http", Host: "target"}}, nil)
	})
	require.Len(t, p.transports.own, 1)
	require.Zero(t, p.transports.used.Front().Value.(*dedicatedTransport).attempts)
	require.Zero(t, p.transports.made["eu"].underWay)
}

// An attempt that was spared before is made on a connection of its own, so that it does
// not meet the end of another one that was kept.
func TestSparedAttemptIsMadeOnANewConnection(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Keep-Alive", "timeout=60") }))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	to, err := url.Parse(srv.URL)
	require.NoError(t, err)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	for name, through := range map[string]string{"plain": "", "with a proxy": "eu"} {
		t.Run(name, func(t *testing.T) {
			proxy := httptest.NewServer(http.HandlerFunc(tunnelTo))
			defer proxy.Close()
			proxyURL, err := url.Parse(proxy.URL)
			require.NoError(t, err)
			p := New(Config{
				Policy: guard.Policy{AllowPrivateNetworks: true}, Timeout: 5 * time.Second, Places: 4, Proxies: map[string]*url.URL{"eu": proxyURL},
				Schemes: signing.DefaultSchemes(), Now: time.Now,
			})
			defer p.CloseIdle()
			opened.Store(0)
			for n, want := range []int32{1, 1, 2, 2} {
				x, err := p.Prepare(&Request{URL: to, Event: "evt_1", Attempt: 1, At: time.Now(), Body: []byte("{}"), Keyring: keyring, Proxy: through, Anew: n == 2}, nil)
				require.NoError(t, err)
				r := x.Send(t.Context(), nil)
				require.Equal(t, sender.ClassNone, r.Class, r.Error)
				require.Equal(t, want, opened.Load())
			}
		})
	}
}

// tunnelTo answers CONNECT.
func tunnelTo(w http.ResponseWriter, r *http.Request) {
	out, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	in, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	go func() {
		defer in.Close()
		_, _ = io.Copy(in, out)
	}()
	defer out.Close()
	_, _ = io.Copy(out, rest)
}

// A proxy has the port of its URL, or that of its scheme.
func TestProxyPort(t *testing.T) {
	for text, want := range map[string]string{
		"http://proxy.example": "proxy.example:80", "https://proxy.example": "proxy.example:443", "https://proxy.example:8443/": "proxy.example:8443", "http://[::1]": "[::1]:80",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		p := newProxy("eu", u, guard.Policy{}, time.Second, nil, nil)
		require.Equal(t, want, p.address)
		require.Equal(t, u.Scheme == "https", p.tls != nil, text)
	}
}
