//go:build linux

package sender

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/signing"
)

// way is how a server is reached.
type way struct {
	proxy       *url.URL
	certificate bool          // a client certificate is given
	timeout     time.Duration // of an attempt; 0: 10 s
}

// caller makes attempts as a Dispatcher does.
type caller struct {
	name    string
	poster  poster
	target  Target
	keyring *signing.Keyring
	dials   atomic.Int32 // of addresses, without a proxy
	used    atomic.Int32 // connections on which it has posted
}

// newCallers returns one with our own transports and one with net/http's, which differ in
// nothing else.
func newCallers(t *testing.T, authority *servertest.Authority, w way) (ours, peer *caller) {
	t.Helper()
	if w.timeout == 0 {
		w.timeout = 10 * time.Second
	}
	keys, err := NewKeys(sealingKey("1", 1))
	require.NoError(t, err)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	config := transportsConfig{keys: keys, policy: Network{AllowPrivateNetworks: true}.policy(), timeout: w.timeout, places: 16}

	certificate, key := authority.Issue()
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	const subscription = "whsub_matrix"
	var settings *Settings
	if w.proxy != nil || w.certificate {
		settings = &Settings{}
	}
	if w.proxy != nil {
		config.proxies, settings.Proxy = map[string]*url.URL{"proxy": w.proxy}, "proxy"
	}
	if w.certificate {
		settings.SealedCertificate = keys.sealCertificate(subscription, []byte(certificate+key))
	}

	newCaller := func(name string, ts *transports) *caller {
		c := &caller{name: name, keyring: keyring, target: Target{Subscription: subscription, Subscriber: "sub_matrix"}}
		c.poster = poster{transports: ts, timeout: w.timeout, schemes: signing.DefaultSchemes(), userAgent: []string{defaultUserAgent}, now: time.Now}
		ts.watch(nil, func(string) error {
			c.dials.Add(1)
			return nil
		})
		return c
	}
	own := newTransports(config)
	trust(own, authority.Pool())
	ours = newCaller("ours", own)
	ours.target.Settings = settings
	t.Cleanup(own.closeIdle)

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
	config.unguarded, config.proxies = std, nil
	theirs := newTransports(config)
	std.DialContext = bounded(theirs.dialer.DialContext)
	peer = newCaller("net-http", theirs)
	t.Cleanup(std.CloseIdleConnections)
	return ours, peer
}

// trust makes all transports trust an authority, and not only those that have a proxy or
// a client certificate.
func trust(ts *transports, roots *x509.CertPool) {
	ts.roots = roots
	ts.plain.(*client).TLS.RootCAs = roots
}

// attempt posts a body of so many bytes.
func (c *caller) attempt(ctx context.Context, id string, to *url.URL, size int) Result {
	body := []byte(`{"data":"` + strings.Repeat("x", max(size, 200)-len(`{"data":""}`)) + `"}`)
	claimed := &Claimed{Number: 1, Target: &c.target, Event: EventInfo{ID: id}, Body: body}
	x, err := c.poster.prepare(claimed, to, c.keyring, time.Now())
	if err != nil {
		return Result{Class: "not sent", Error: err.Error()}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			c.used.Add(1)
		}
	}})
	return x.send(withDialing(ctx, new(dialing)), nil)
}
