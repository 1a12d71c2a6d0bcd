package post

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender/internal/http1"
)

// maxProxyAnswer bounds the headers of a proxy's own answer, and of the interim ones before
// it, in bytes.
const maxProxyAnswer = 16 << 10

// proxy is one of the operator's HTTP proxies, which all of the transports that go
// through it have in common.
type proxy struct {
	name     string
	address  string
	tls      *tls.Config // nil: it speaks in the clear
	header   http.Header // of what it is asked; may hold credentials
	policy   guard.Policy
	timeout  time.Duration
	resolver *net.Resolver
	reach    dialFunc // connects to the proxy itself

	heard  atomic.Uint64 // counts its answers, and those that came through it
	asking chan struct{} // capacity 1: whether it is alive is being asked

	mu       sync.Mutex
	watch    proxyWatch
	underWay int // attempts
}

func newProxy(name string, u *url.URL, policy guard.Policy, timeout time.Duration, roots *x509.CertPool, resolver *net.Resolver) *proxy {
	p := &proxy{
		name: name, policy: policy, timeout: timeout, resolver: resolver,
		header: http.Header{"User-Agent": {DefaultUserAgent}},
		reach:  (&net.Dialer{Resolver: resolver}).DialContext,
		asking: make(chan struct{}, 1),
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	if u.Scheme == "https" {
		p.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname(), RootCAs: roots}
	}
	if user := u.User; user != nil {
		password, _ := user.Password()
		p.header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	return p
}

// open connects to the proxy.
func (p *proxy) open(ctx context.Context) (net.Conn, *proxyError) {
	conn, err := p.reach(ctx, "tcp", p.address)
	if err != nil && system.exhausted(err) {
		return nil, &proxyError{text: noResources, err: err}
	}
	if err != nil {
		return nil, &proxyError{text: "the sender's proxy cannot be reached", failed: true, err: endOf(ctx, err)}
	}
	if p.tls == nil {
		return conn, nil
	}
	secure := tls.Client(conn, p.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &proxyError{text: "the TLS handshake with the sender's proxy failed", failed: true, err: endOf(ctx, err)}
	}
	return secure, nil
}

// ask sends the proxy a request without a body, and returns its answer, whose body is not to
// be read, and whether more than its headers came. An error is that no answer did.
func (p *proxy) ask(ctx context.Context, conn net.Conn, request *http.Request) (answer *http.Response, more bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := request.Write(conn); err != nil {
		return nil, false, endOf(ctx, err)
	}
	// The buffer holds one byte more than headers may have: with it, what came together with
	// them is seen, however long they are.
	bounded := &io.LimitedReader{R: conn, N: maxProxyAnswer + 1}
	reader := bufio.NewReaderSize(bounded, maxProxyAnswer+1)
	for {
		answer, err = http.ReadResponse(reader, request)
		if err != nil {
			return nil, false, endOf(ctx, err)
		}
		p.heard.Add(1)
		if !http1.Interim(answer.StatusCode) {
			break
		}
	}
	if !stop() { // the connection is past its deadline
		return nil, false, ctx.Err()
	}
	if bounded.N == 0 && reader.Buffered() == 0 {
		return nil, false, io.ErrUnexpectedEOF // as those that are longer still
	}
	return answer, reader.Buffered() > 0, nil
}

// endOf is the end of ctx, if that is why something failed.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// CheckProxies reports everything that is wrong with the proxies of config, such as
// "dispatch: Config". Nothing of their URLs is in the errors: they may hold credentials.
func CheckProxies(config string, proxies map[string]*url.URL) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(proxies)) {
		u := proxies[name]
		if err := ident.ProxyName(name); err != nil {
			errs = append(errs, fmt.Errorf("%s.Proxies: %w", config, err))
		}
		if u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, fmt.Errorf("%s.Proxies: the URL of %q: it must be http or https, with a host, and a port and credentials if need be, and nothing else", config, name))
		}
	}
	return errs
}

func cloneProxies(proxies map[string]*url.URL) map[string]*url.URL {
	out := make(map[string]*url.URL, len(proxies))
	for name, u := range proxies {
		own := *u
		out[name] = &own
	}
	return out
}
