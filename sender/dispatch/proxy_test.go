package dispatch_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// A tunnel goes through the proxy to the address that was checked here, and TLS is still
// with the host of the URL.
func TestPostThroughProxy(t *testing.T) {
	a := bedtest.NewAuthority(t)
	certificate := a.Server("localhost")
	for name, proxyTLS := range map[string]*tls.Certificate{"http": nil, "https": &certificate} {
		t.Run("by "+name, func(t *testing.T) {
			proxy := bedtest.NewConnectProxy(t, proxyTLS)
			plain := sendertest.NewEndpoint(t)
			got := make(chan string, 1)
			secure := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.TLS.ServerName + " " + r.Host }))
			secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			secure.StartTLS()
			defer secure.Close()

			b := bedtest.New(t)
			_, secret := b.Subscribe("sub_plain", bedtest.AtLocalhost(plain.URL()))
			b.Subscribe("sub_secure", bedtest.AtLocalhost(secure.URL))
			d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{Proxies: map[string]*url.URL{"eu": proxy.URL(t)}})
			d.Trust(a.Pool)
			defer d.CloseIdle()
			const posts = 10
			for range posts {
				b.Publish("sub_plain")
				stats, err := d.RunOnce(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, stats.Delivered)
			}
			b.Publish("sub_secure")
			stats, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, stats.Delivered)

			require.Len(t, plain.Requests(), posts)
			require.NoError(t, plain.Requests()[0].Verify(secret))
			require.NotContains(t, plain.Requests()[0].Header, "Proxy-Authorization")
			require.Equal(t, "localhost "+strings.TrimPrefix(bedtest.AtLocalhost(secure.URL), "https://"), <-got)
			asked, auth := proxy.Requests()
			require.Less(t, len(asked), posts/2, "connections are kept") // net/http sometimes drops one
			for _, at := range asked {
				require.Regexp(t, `^CONNECT (127\.0\.0\.1|\[::1\]):\d+$`, at, "an address and not a name")
			}
			require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("operator:hunter2")), auth[0])
		})
	}
}

// A name that resolves to a forbidden address is blocked before the proxy hears of it.
func TestGuardThroughProxy(t *testing.T) {
	proxy := bedtest.NewConnectProxy(t, nil)
	ep := sendertest.NewEndpoint(t)
	for _, to := range []string{ep.URL(), bedtest.AtLocalhost(ep.URL())} {
		b := bedtest.New(t)
		b.Subscribe("sub_a", to)
		b.Publish("sub_a")
		d, err := dispatch.New(b.StoreWith(sender.Settings{Proxy: "eu"}), b.Keys, &dispatch.Config{
			Proxies: map[string]*url.URL{"eu": proxy.URL(t)}, // the proxy itself is on loopback
		})
		require.NoError(t, err)
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		a := b.Delivery().Attempts[0]
		require.Equal(t, sender.ClassBlocked, a.Class, a.Error)
	}
	asked, _ := proxy.Requests()
	require.Empty(t, asked)
	require.Empty(t, ep.Requests())
}

// The dispatcher tells a proxy's failures from an endpoint's. It does not charge them to the
// endpoint.
func TestProxyThatFails(t *testing.T) {
	t.Parallel()
	answering := func(answer string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, answer)
		}
	}
	status := func(code int) func(net.Conn) {
		return answering(fmt.Sprintf("HTTP/1.1 %d Some Words\r\nContent-Length: 0\r\n\r\n", code))
	}
	says := func(code int) string {
		return fmt.Sprintf("the sender's proxy made no connection: it answered %d", code)
	}
	hang := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	const proxys, endpoints = true, false
	for name, c := range map[string]struct {
		proxy func(net.Conn)
		class sender.Class
		says  string
		fault bool
	}{
		"forbids":           {status(403), sender.ClassConnect, says(403), proxys},
		"cannot connect":    {status(502), sender.ClassConnect, says(502), endpoints},
		"finds nobody":      {status(503), sender.ClassConnect, says(503), endpoints},
		"waits in vain":     {status(504), sender.ClassConnect, says(504), endpoints},
		"breaks":            {status(500), sender.ClassConnect, says(500), endpoints},
		"makes no tunnels":  {status(501), sender.ClassConnect, says(501), proxys},
		"another version":   {status(505), sender.ClassConnect, says(505), proxys},
		"wants a login":     {status(511), sender.ClassConnect, says(511), proxys},
		"is a web server":   {status(400), sender.ClassConnect, says(400), proxys},
		"is another one":    {status(404), sender.ClassConnect, says(404), proxys},
		"is a third one":    {status(405), sender.ClassConnect, says(405), proxys},
		"leads elsewhere":   {status(302), sender.ClassConnect, says(302), proxys},
		"says go on":        {answering(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 2)), sender.ClassConnect, "the sender's proxy broke the connection off", proxys},
		"says only go on":   {answering(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 2000) + "HTTP/1.1 200 OK\r\n\r\n"), sender.ClassConnect, "is not HTTP", proxys},
		"switches":          {status(101), sender.ClassConnect, says(101), proxys},
		"asks who we are":   {status(407), sender.ClassConnect, "the sender's proxy asks for other credentials (407)", proxys},
		"is none":           {answering("220 smtp ready\r\n"), sender.ClassConnect, "the proxy's answer to CONNECT is not HTTP", proxys},
		"leaves":            {func(net.Conn) {}, sender.ClassConnect, "the sender's proxy broke the connection off", proxys},
		"answers at length": {answering("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n"), sender.ClassConnect, "is not HTTP", proxys},
		"has a page":        {answering("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nwelcome\n"), sender.ClassConnect, "more than an answer", proxys},
		"has a long page":   {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nwelcome\n\r\n"), sender.ClassConnect, "more than an answer", proxys},
		"reaches a speaker": {answering("HTTP/1.1 200 OK\r\n\r\n220 smtp ready\r\n"), sender.ClassProtocol, "the server spoke before it was asked", endpoints},
		"says too much":     {answering("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), sender.ClassProtocol, "the server spoke before it was asked", endpoints},
		"hangs":             {hang, sender.ClassTimeout, "the sender's proxy does not answer", proxys},
		"is not there":      {nil, sender.ClassConnect, "the sender's proxy cannot be reached", proxys},
		"reaches, and ends": {answering("HTTP/1.1 200 OK\r\n\r\n"), sender.ClassReset, "the connection was closed before the answer was whole", endpoints},
		"works on it":       {answering("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\nVia: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), sender.ClassReset, "the connection was closed before the answer was whole", endpoints},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, close := bedtest.Listen(t, c.proxy)
			defer close()
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://127.0.0.1:9/")
			b.Publish("sub_a")
			var recorded bedtest.Noted[dispatch.Recorded]
			timeout := time.Duration(0) // the default
			if c.class == sender.ClassTimeout {
				timeout = 5 * time.Second // the proxy is connected to in that time
			}
			_, err := b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{
				Timeout: timeout, Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: at, User: url.UserPassword("u", "hunter2")}},
				Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }},
			}).RunOnce(t.Context())
			require.NoError(t, err)
			a := b.Delivery().Attempts[0]
			require.Equal(t, c.class, a.Class, a.Error)
			require.Contains(t, a.Error, c.says)
			require.NotContains(t, a.Error, at, "nothing of our network")
			r := recorded.List()[0]
			require.Equal(t, c.fault == proxys, r.Result.ProxyFailed)
			require.Equal(t, c.fault == proxys, r.Decision.Uncounted)
			require.Equal(t, c.fault == proxys, r.Decision.Health == sender.Health{}, "%+v", r.Decision.Health)
		})
	}
}

// A proxy also fails if its own name has no address, or if its certificate is for another
// name.
func TestProxyThatCannotBeFound(t *testing.T) {
	a := bedtest.NewAuthority(t)
	certificate := a.Server("elsewhere")
	secure := bedtest.NewConnectProxy(t, &certificate)
	for says, u := range map[string]*url.URL{
		"the sender's proxy cannot be reached":             {Scheme: "http", Host: "proxy.example.com:3128"},
		"the TLS handshake with the sender's proxy failed": secure.URL(t),
	} {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://127.0.0.1:9/")
		b.Publish("sub_a")
		var recorded bedtest.Noted[dispatch.Recorded]
		d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{
			Proxies: map[string]*url.URL{"eu": u}, Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }},
		})
		d.Dial((&ssrftest.Zone{Answers: map[string][][]netip.Addr{"localhost": {ssrftest.Addresses("127.0.0.1")}}}).Resolver(), func(string) error { return nil })
		d.Trust(a.Pool)
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		r := recorded.List()[0].Result
		require.Equal(t, sender.ClassConnect, r.Class)
		require.Equal(t, says, r.Error)
		require.True(t, r.ProxyFailed)
	}
}

// A proxy may forbid one of a host's addresses, and connect to another. If it may try an
// address and nobody answers there, the failure is the host's.
func TestProxyThatForbidsSomeAddresses(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second int // statuses, of 11.0.0.1 and 11.0.0.2
		class         sender.Class
		says          string
		fault         bool // of the proxy
	}{
		{"forbids the first", 403, 200, sender.ClassReset, "closed", false},
		{"forbids both", 403, 403, sender.ClassConnect, "403", true},
		{"forbids the first, and finds nobody at the second", 403, 503, sender.ClassConnect, "503", false},
		{"finds nobody at the first, and forbids the second", 503, 403, sender.ClassConnect, "503", false},
		{"wants other credentials for the first", 407, 200, sender.ClassConnect, "407", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, close := bedtest.Listen(t, func(conn net.Conn) {
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				status := c.first
				if r.Host == "11.0.0.2:80" {
					status = c.second
				}
				fmt.Fprintf(conn, "HTTP/1.1 %d Words\r\n\r\n", status)
			})
			defer close()
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://host.example.com/")
			b.Publish("sub_a")
			var recorded bedtest.Noted[dispatch.Recorded]
			d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{
				Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: at}}, Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) { recorded.Add(*r) }},
			})
			zone := &ssrftest.Zone{Answers: map[string][][]netip.Addr{"host.example.com": {ssrftest.Addresses("11.0.0.1", "11.0.0.2")}}}
			d.Dial(zone.Resolver(), func(string) error { return nil })
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			r := recorded.List()[0].Result
			require.Equal(t, c.class, r.Class, r.Error)
			require.Contains(t, r.Error, c.says)
			require.Equal(t, c.fault, r.ProxyFailed)
		})
	}
}

// A proxy reaches only one of a host's addresses, behind many of the other family, or behind
// one for which it waits in vain as long as it is let.
func TestProxyThatReachesOneAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reaches, addresses string
		waits              bool
	}{
		"IPv4":           {"11.0.0.1:80", "2606:4700::1 2606:4700::2 2606:4700::3 2606:4700::4 11.0.0.1", false},
		"IPv6":           {"[2606:4700::1]:80", "11.0.0.1 11.0.0.2 11.0.0.3 11.0.0.4 2606:4700::1", false},
		"the second one": {"11.0.0.2:80", "11.0.0.1 11.0.0.2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, close := bedtest.Listen(t, func(conn net.Conn) {
				reader := bufio.NewReader(conn)
				if r, err := http.ReadRequest(reader); err != nil || r.Host != c.reaches {
					if c.waits {
						_, _ = io.Copy(io.Discard, conn)
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\n\r\n")
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				if _, err := http.ReadRequest(reader); err == nil {
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				}
			})
			defer close()
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://host.example.com/")
			b.Publish("sub_a")
			d := b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{Timeout: 10 * time.Second, Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: at}}})
			zone := &ssrftest.Zone{Answers: map[string][][]netip.Addr{"host.example.com": {ssrftest.Addresses(strings.Fields(c.addresses)...)}}}
			d.Dial(zone.Resolver(), func(string) error { return nil })
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			a := b.Delivery().Attempts[0]
			require.Equal(t, sender.ClassNone, a.Class, a.Error)
		})
	}
}

// A delivery that cannot be sent as the settings ask is not sent, and not given up.
func TestUnsentRatherThanWithout(t *testing.T) {
	a := bedtest.NewAuthority(t)
	b := bedtest.New(t)
	b.Subscribe("sub_other", "https://endpoint/")
	other, err := b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_other", URL: "https://endpoint/", ClientCertificate: a.Client("other")})
	require.NoError(t, err)
	never := bedtest.TransportFunc(func(*http.Request) (*http.Response, error) {
		t.Error("it was posted")
		return nil, io.EOF
	})
	proxies := map[string]*url.URL{"eu": {Scheme: "http", Host: "localhost:1", User: url.UserPassword("u", "hunter2")}}
	for name, c := range map[string]struct {
		url      string
		settings sender.Settings
		cfg      dispatch.Config
		says     string
	}{
		"unknown proxy":          {"http://127.0.0.1:9/", sender.Settings{Proxy: "us"}, dispatch.Config{Proxies: proxies}, `asks for the proxy \"us\", which is not among`},
		"another's":              {"https://127.0.0.1:9/", other.Settings, dispatch.Config{}, "moved from another row"},
		"not sealed":             {"https://127.0.0.1:9/", sender.Settings{SealedCertificate: []byte("plain")}, dispatch.Config{}, "cannot be opened"},
		"no TLS":                 {"http://127.0.0.1:9/", other.Settings, dispatch.Config{}, "not https"},
		"proxy, unguarded":       {"http://127.0.0.1:9/", sender.Settings{Proxy: "eu"}, dispatch.Config{Proxies: proxies, UnguardedTransport: never}, "UnguardedTransport does not give"},
		"certificate, unguarded": {"https://127.0.0.1:9/", other.Settings, dispatch.Config{UnguardedTransport: never}, "UnguardedTransport does not give"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			b := bedtest.New(t)
			b.Subscribe("sub_a", c.url)
			b.Publish("sub_a")
			c.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			var reason dispatch.PutOffReason
			c.cfg.Hooks.PutOff = func(_ context.Context, p dispatch.PutOff) { reason = p.Reason }
			stats, err := b.DispatcherWith(c.settings, c.cfg).RunOnce(t.Context())
			require.NoError(t, err)
			require.Equal(t, dispatch.Stats{Expanded: 1, PutOff: 1}, stats)
			require.Equal(t, dispatch.PutOffSettings, reason)
			d := b.Delivery()
			require.Equal(t, sender.StatusPending, d.Status)
			require.Empty(t, d.Attempts)
			require.Contains(t, log.String(), c.says)
			require.NotContains(t, log.String(), "hunter2")
		})
	}
}

func TestProxiesThatCannotBe(t *testing.T) {
	b := bedtest.New(t)
	for _, bad := range []string{"socks5://hunter2@proxy", "http://", "//hunter2@proxy", "http://u:hunter2@proxy/path", "http://u:hunter2@proxy?q", "http://proxy#hunter2"} {
		u, err := url.Parse(bad)
		require.NoError(t, err)
		proxies := map[string]*url.URL{"eu": u, "": {Scheme: "http", Host: "proxy"}, "nil": nil}
		_, err = dispatch.New(b.Store, b.Keys, &dispatch.Config{Proxies: proxies})
		_, err2 := challenge.New(&challenge.Config{Proxies: proxies})
		for config, err := range map[string]error{"dispatch: Config": err, "challenge: Config": err2} {
			for _, part := range []string{`the URL of "eu"`, `the name ""`, `the URL of "nil"`} {
				require.ErrorContains(t, err, fmt.Sprintf("%s.Proxies: %s", config, part), bad)
			}
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
}
