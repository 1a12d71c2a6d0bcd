package sender

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/guard"
)

const (
	// maxTunnelTries bounds how many of a host's addresses a proxy is asked for.
	maxTunnelTries = 3
	// maxTunnelAnswer bounds the answer to a CONNECT, in bytes.
	maxTunnelAnswer = 16 << 10
)

// tunnel makes connections through an HTTP proxy by CONNECT (RFC 9110, section
// 9.3.6), for http and https targets alike, so that the proxy never sees a
// request.
//
// The guard holds as it does without a proxy: the target's name is resolved here,
// and the proxy is asked for one of the addresses that may be called, never for
// the name, which could lead it elsewhere. The proxy's own address is the
// operator's choice and is not guarded.
type tunnel struct {
	address  string // of the proxy
	tls      *tls.Config
	header   http.Header // of a CONNECT; may hold credentials
	policy   guard.Policy
	timeout  time.Duration
	resolver *net.Resolver
}

func newTunnel(proxy *url.URL, policy guard.Policy, timeout time.Duration, roots *x509.CertPool, resolver *net.Resolver) *tunnel {
	t := &tunnel{policy: policy, timeout: timeout, resolver: resolver, header: http.Header{"User-Agent": {defaultUserAgent}}}
	port := proxy.Port()
	if port == "" {
		port = "80"
		if proxy.Scheme == "https" {
			port = "443"
		}
	}
	t.address = net.JoinHostPort(proxy.Hostname(), port)
	if proxy.Scheme == "https" {
		t.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: proxy.Hostname(), RootCAs: roots}
	}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		t.header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	return t
}

// proxyError tells that the proxy failed, and not the target. Its text is for the
// subscription's owner.
type proxyError struct {
	text string
	err  error
}

func (e *proxyError) Error() string { return e.text }
func (e *proxyError) Unwrap() error { return e.err }

// dial is for http1.Client.Dial.
func (t *tunnel) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	targets, err := t.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		var conn net.Conn
		if conn, err = t.connect(ctx, target); err == nil {
			return conn, nil
		}
		if !errors.Is(err, errNoTunnel) || ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// resolve returns the addresses of the target that may be called, up to
// maxTunnelTries, or guard.ErrBlocked if there is none.
func (t *tunnel) resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	found := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		found = append(found, literal)
	} else if found, err = t.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	var targets []netip.AddrPort
	for _, a := range found {
		if a = a.Unmap(); t.policy.CheckAddr(a) == nil && len(targets) < maxTunnelTries {
			targets = append(targets, netip.AddrPortFrom(a, uint16(port)))
		}
	}
	if targets == nil {
		return nil, guard.ErrBlocked
	}
	return targets, nil
}

// connect opens one tunnel.
func (t *tunnel) connect(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Resolver: t.resolver}
	conn, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, &proxyError{"the proxy cannot be reached", err}
	}
	if t.tls != nil {
		secure := tls.Client(conn, t.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, &proxyError{"the TLS handshake with the proxy failed", err}
		}
		conn = secure
	}
	if err := t.ask(ctx, conn, target); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// ask makes a tunnel of the connection.
func (t *tunnel) ask(ctx context.Context, conn net.Conn, target netip.AddrPort) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target.String()}, Host: target.String(), Header: t.header}
	if err := request.Write(conn); err != nil {
		return &proxyError{"the proxy broke the connection off", endOf(ctx, err)}
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxTunnelAnswer))
	answer, err := http.ReadResponse(reader, request) //nolint:bodyclose // it has none, or its connection is closed
	if err != nil {
		return &proxyError{"the proxy's answer to CONNECT is not HTTP", endOf(ctx, err)}
	}
	switch {
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return &proxyError{"the proxy asks for other credentials (407)", nil}
	case answer.StatusCode < 200 || answer.StatusCode >= 300:
		return &proxyError{fmt.Sprintf("the proxy made no connection: it answered %d", answer.StatusCode), errNoTunnel}
	case reader.Buffered() > 0: // neither HTTP nor TLS lets a server speak first
		return &proxyError{"the proxy sent more than an answer to CONNECT", nil}
	case !stop():
		return &proxyError{"the proxy did not answer in time", ctx.Err()}
	}
	return nil
}

// endOf is the end of ctx, if that is why something failed.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// errNoTunnel: the proxy works and did not connect. What it says of one address
// may not hold for the next.
var errNoTunnel = errors.New("no tunnel")

// checkProxies reports everything that is wrong with a configuration's proxies.
// Nothing of their URLs is in the errors: they may hold credentials.
func checkProxies(config string, proxies map[string]*url.URL) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(proxies)) {
		u := proxies[name]
		if err := checkProxyName(name); err != nil {
			errs = append(errs, fmt.Errorf("sender: %s.Proxies: %w", config, err))
		}
		if u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, fmt.Errorf("sender: %s.Proxies: the URL of %q: it must be http or https, with a host, and a port and credentials if need be, and nothing else", config, name))
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
