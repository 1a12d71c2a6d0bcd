//go:build linux

package post

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/signing"
)

// way is how a server is reached.
type way struct {
	proxy       *url.URL
	certificate bool          // a client certificate is given
	timeout     time.Duration // of an attempt; 0: patient
	peerTimeout time.Duration // of one of net/http's; 0: as ours
}

// patient is the time of an attempt that is answered, on a busy machine.
const patient = 2 * time.Minute

// keeps has an answer promise that its server keeps an unused connection. A server that
// promises nothing is posted to anew after a second, which a busy machine may let pass between
// two posts.
func keeps(w http.ResponseWriter) { w.Header().Set("Keep-Alive", "timeout=60") }

// caller makes attempts as a Dispatcher does.
type caller struct {
	name    string
	poster  *Poster
	request Request // what all of its attempts have in common
	open    func() (*tls.Certificate, error)
	dials   atomic.Int32 // of addresses, without a proxy
	used    atomic.Int32 // connections on which it has posted
}

// newCallers returns one with our own transports and one with net/http's, which differ in
// nothing else.
func newCallers(t *testing.T, authority *servertest.Authority, w way) (ours, peer *caller) {
	t.Helper()
	w.timeout = cmp.Or(w.timeout, patient)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	config := Config{
		Policy: guard.Policy{AllowPrivateNetworks: true}, Timeout: w.timeout, Places: 16,
		Schemes: signing.DefaultSchemes(), UserAgent: DefaultUserAgent, Now: time.Now,
	}

	certificate, key := authority.Issue()
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	plain := Request{Subscription: "whsub_matrix", Attempt: 1, Keyring: keyring}
	asks := plain
	if w.proxy != nil {
		config.Proxies, asks.Proxy = map[string]*url.URL{"proxy": w.proxy}, "proxy"
	}
	if w.certificate {
		asks.SealedCertificate = []byte("of the matrix")
	}

	newCaller := func(name string, p *Poster, request Request) *caller {
		c := &caller{name: name, poster: p, request: request, open: func() (*tls.Certificate, error) { return &pair, nil }}
		p.Watch(nil, func(string) error {
			c.dials.Add(1)
			return nil
		})
		return c
	}
	own := New(config)
	own.Trust(authority.Pool(), true)
	ours = newCaller("ours", own, asks)
	t.Cleanup(func() { own.CloseIdle() })

	std := &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool()},
		ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if w.proxy != nil {
		std.Proxy = http.ProxyURL(w.proxy)
	}
	if w.certificate {
		std.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	config.Unguarded, config.Proxies, config.Timeout = std, nil, cmp.Or(w.peerTimeout, w.timeout)
	theirs := New(config)
	std.DialContext = bounded(theirs.transports.dialer.DialContext)
	peer = newCaller("net-http", theirs, plain)
	t.Cleanup(std.CloseIdleConnections)
	return ours, peer
}

// attempt posts a body of size bytes.
func (c *caller) attempt(ctx context.Context, id string, to *url.URL, size int) Answer {
	body := []byte(`{"data":"` + strings.Repeat("x", max(size, 200)-len(`{"data":""}`)) + `"}`)
	request := c.request
	request.URL, request.Event, request.Body, request.At = to, id, body, time.Now()
	x, err := c.poster.Prepare(&request, c.open)
	if err != nil {
		return Answer{Class: "not sent", Error: err.Error()}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			c.used.Add(1)
		}
	}})
	return x.Send(WithDialing(ctx, new(Dialing)), nil)
}
