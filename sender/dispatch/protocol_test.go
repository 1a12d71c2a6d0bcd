package dispatch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// protocolServer offers given protocols, and notes its requests.
type protocolServer struct {
	*httptest.Server
	answer http.HandlerFunc
	offers atomic.Pointer[[]string]
	silent bool // it sends no alert

	mu     sync.Mutex
	asked  []string // the protocol of each request, and whose certificate came
	opened int      // connections
}

func newProtocolServer(t *testing.T, a *bedtest.Authority, offers ...string) *protocolServer {
	t.Helper()
	s := &protocolServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		s.asked = append(s.asked, r.Proto+" "+who)
		s.mu.Unlock()
		if s.answer != nil {
			s.answer(w, r)
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.Server("localhost")}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: a.Pool}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the handshakes that fail
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.opened++
			s.mu.Unlock()
		}
	}
	s.offer(offers...)
	s.TLS.GetConfigForClient = s.choose
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// offer changes what the server offers in the handshakes that follow.
func (s *protocolServer) offer(protocols ...string) { s.offers.Store(&protocols) }

// choose answers with an alert to a client that offers none of the server's protocols. If a
// client offers only HTTP/1.1, a Go server that offers HTTP/2 chooses nothing. This server
// does the same if it is silent.
func (s *protocolServer) choose(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	config := &tls.Config{
		Certificates: s.TLS.Certificates, ClientAuth: s.TLS.ClientAuth, ClientCAs: s.TLS.ClientCAs, NextProtos: *s.offers.Load(),
	}
	met := func(offered string) bool { return slices.Contains(hello.SupportedProtos, offered) }
	if !s.silent && !slices.ContainsFunc(config.NextProtos, met) {
		config.NextProtos = []string{"none"}
	}
	return config, nil
}

func (s *protocolServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// protocolBed delivers to a server with a client certificate, so that the test's own
// authority is trusted.
func protocolBed(t *testing.T, a *bedtest.Authority, srv *protocolServer, proxy *bedtest.ConnectProxy, timeout time.Duration) (publish func() sender.Attempt, d *dispatch.Dispatcher) {
	b := bedtest.New(t)
	subscribeWithCertificate(b, "sub_a", bedtest.AtLocalhost(srv.URL), a.Client("alice"))
	if proxy != nil {
		d = b.DispatcherWith(sender.Settings{Proxy: "eu"}, dispatch.Config{Timeout: timeout, Proxies: map[string]*url.URL{"eu": proxy.URL(t)}})
	} else {
		d = b.Dispatcher(dispatch.Config{Timeout: timeout})
	}
	d.Trust(a.Pool)
	t.Cleanup(func() { d.CloseIdle() })
	return func() sender.Attempt {
		t.Helper()
		ref := b.Publish("sub_a")
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Event: ref.ID})
		require.NoError(t, err)
		require.Len(t, list, 1)
		full, err := b.History.Delivery(t.Context(), list[0].ID)
		require.NoError(t, err)
		require.Len(t, full.Attempts, 1)
		return full.Attempts[0]
	}, d
}

// An endpoint that offers no HTTP/1.1 gets its deliveries over HTTP/2, also the first one,
// and also through a proxy.
func TestPostOverHTTP2(t *testing.T) {
	a := bedtest.NewAuthority(t)
	for name, c := range map[string]struct{ proxied, silent bool }{
		"directly": {}, "through a proxy": {proxied: true}, "without an alert": {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newProtocolServer(t, a, "h2")
			srv.silent = c.silent
			var proxy *bedtest.ConnectProxy
			who := "alice"
			if c.proxied {
				proxy, who = bedtest.NewConnectProxy(t, nil), "nobody" // the bed's settings have only a proxy
			}
			publish, _ := protocolBed(t, a, srv, proxy, 0)
			const posts = 10
			for range posts {
				require.Equal(t, sender.ClassNone, publish().Class)
			}
			require.Len(t, srv.requests(), posts)
			for _, asked := range srv.requests() {
				require.Equal(t, "HTTP/2.0 "+who, asked)
			}
			require.Equal(t, 2, srv.opened, "for the handshake that showed it, and for all attempts")
			if c.proxied {
				asked, _ := proxy.Requests()
				require.Len(t, asked, 2)
			}
		})
	}
}

// An attempt that fails over HTTP/2 is not repeated, and its text names the protocol.
func TestFailuresOverHTTP2(t *testing.T) {
	t.Parallel()
	a := bedtest.NewAuthority(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  sender.Class
		text   string
	}{
		"status":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, sender.ClassStatus, "answered 500 (over HTTP/2)"},
		"redirect":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(301) }, sender.ClassRedirect, "answered 301: redirects are not followed (over HTTP/2)"},
		"reset":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, sender.ClassReset, "the connection was closed before the answer was whole (over HTTP/2)"},
		"cut":           {cutShort, sender.ClassReset, "the connection was closed before the answer was whole (over HTTP/2)"},
		"hangs":         {hang, sender.ClassTimeout, "no whole answer within the attempt's time (over HTTP/2)"},
		"large headers": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 70_000)) }, sender.ClassProtocol, "the answer's headers are longer than 64 KiB (over HTTP/2)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newProtocolServer(t, a, "h2")
			srv.answer = c.answer
			timeout := time.Duration(0) // the default
			if c.class == sender.ClassTimeout {
				timeout = 5 * time.Second // the handshakes are over by then
			}
			publish, _ := protocolBed(t, a, srv, nil, timeout)
			for n := range 2 {
				got := publish()
				require.Equal(t, c.class, got.Class)
				require.Equal(t, c.text, got.Error)
				require.Len(t, srv.requests(), n+1, "nothing is sent twice")
			}
		})
	}
}

func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func cutShort(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "9")
	_, _ = io.WriteString(w, "some")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// A server can begin or stop offering a protocol while the dispatcher runs.
func TestProtocolsThatChange(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := newProtocolServer(t, a, "http/1.1")
	publish, d := protocolBed(t, a, srv, nil, 0)
	for _, c := range []struct {
		offers string
		speaks string
	}{{"http/1.1", "HTTP/1.1"}, {"h2", "HTTP/2.0"}, {"http/1.1", "HTTP/1.1"}, {"h2", "HTTP/2.0"}} {
		srv.offer(c.offers)
		d.CloseIdle()
		before := len(srv.requests())
		got := publish()
		require.Equal(t, sender.ClassNone, got.Class, got.Error)
		require.Equal(t, []string{c.speaks + " alice"}, srv.requests()[before:])
	}
	srv = newProtocolServer(t, a, "another/1")
	for range 2 {
		publish, _ := protocolBed(t, a, srv, nil, 0)
		got := publish()
		require.Equal(t, sender.ClassTLS, got.Class)
		require.Equal(t, "the server offers neither HTTP/1.1 nor HTTP/2", got.Error)
	}
}

// alerted is a connection whose server ends TLS by an alert in place of an answer.
type alerted struct {
	net.Conn
	asks func() bool // a request has come
}

func (c alerted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.asks() {
		return 0, &net.OpError{Op: "remote error", Err: errors.New("tls: no application protocol")}
	}
	return n, err
}

// A server that has read a request gets no other one, whatever it says of protocols then.
func TestLateChoiceOfAProtocolRepeatsNothing(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := newProtocolServer(t, a, "http/1.1", "h2")
	b := bedtest.New(t)
	b.Subscribe("sub_a", bedtest.AtLocalhost(srv.URL))
	d := b.Dispatcher(dispatch.Config{})
	d.TrustEverywhere(a.Pool)
	t.Cleanup(func() { d.CloseIdle() })
	dials := 0
	d.Connect("", func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if dials++; dials == 1 && err == nil {
			conn = alerted{conn, func() bool { return len(srv.requests()) > 0 }}
		}
		return conn, err
	})
	b.Publish("sub_a")
	_, err := d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"HTTP/1.1 nobody"}, srv.requests())
	require.Equal(t, 1, dials)
	got := b.Delivery().Attempts[0]
	require.Equal(t, sender.ClassTLS, got.Class)
	require.Equal(t, `the server ended TLS by the alert "no application protocol"`, got.Error)
}

// A server that knows nothing of the choice of protocols gets HTTP/1.1.
func TestServerThatChoosesNoProtocol(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := newProtocolServer(t, a)
	srv.silent = true
	srv.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Keep-Alive", "timeout=60") }
	publish, _ := protocolBed(t, a, srv, nil, 0)
	for range 10 {
		require.Equal(t, sender.ClassNone, publish().Class)
	}
	require.Len(t, srv.requests(), 10)
	require.Equal(t, "HTTP/1.1 alice", srv.requests()[0])
	require.Equal(t, 2, srv.opened, "one to find out, and one for all attempts")
}

// If a server closes a connection as it is used again, nobody is at fault: the attempt is
// recorded, and made again a second later, on a connection of its own. Only the second
// attempt counts.
func TestServerThatClosesKeptConnections(t *testing.T) {
	for name, then := range map[string]sendertest.Step{"answers": sendertest.Status(200), "closes again": sendertest.CloseWithoutAnswer()} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			store, err := memory.New(&memory.Config{Now: func() time.Time { return now }})
			require.NoError(t, err)
			b := bedtest.NewOn(t, store)
			patient := sendertest.Answer(200, http.Header{"Keep-Alive": {"timeout=60"}}, "") // a busy machine takes its time until the next post
			ep := sendertest.NewEndpoint(t, patient, sendertest.CloseWithoutAnswer(), then)
			sub, _ := b.Subscribe("sub_a", ep.URL())
			d := b.Dispatcher(dispatch.Config{})
			run := func() {
				_, err := d.RunOnce(t.Context())
				require.NoError(t, err)
			}
			b.Publish("sub_a")
			run()
			ref := b.Publish("sub_a")
			run()
			delivery := func() sender.Delivery {
				list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Event: ref.ID})
				require.NoError(t, err)
				full, err := b.History.Delivery(t.Context(), list[0].ID)
				require.NoError(t, err)
				return full
			}
			one := delivery()
			require.Len(t, one.Attempts, 1)
			require.Equal(t, sender.ClassReset, one.Attempts[0].Class)
			require.Equal(t, "the server closed a connection that was kept from an earlier attempt", one.Attempts[0].Error)
			require.InDelta(t, time.Second, one.NextAttemptAt.Sub(now), float64(250*time.Millisecond))
			healthy, err := b.Registry.Subscription(t.Context(), sub.ID)
			require.NoError(t, err)
			require.Zero(t, healthy.Health.Streak)

			now = now.Add(2 * time.Second)
			run()
			two := delivery()
			require.Len(t, two.Attempts, 2)
			require.Len(t, ep.Requests(), 3)
			if name == "answers" {
				require.Equal(t, sender.StatusDelivered, two.Status)
				return
			}
			require.Equal(t, sender.ClassReset, two.Attempts[1].Class)
			require.Greater(t, two.NextAttemptAt.Sub(now), 40*time.Second, "the first delay of the schedule")
			charged, err := b.Registry.Subscription(t.Context(), sub.ID)
			require.NoError(t, err)
			require.Equal(t, 1, charged.Health.Streak)
		})
	}
}
