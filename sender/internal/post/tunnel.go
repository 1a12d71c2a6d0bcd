package post

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender/internal/http1"
)

// maxTunnelTries bounds how many of a host's addresses a proxy is asked for.
const maxTunnelTries = 3

// proxyError tells that there is no connection through a proxy. Its text is for the
// subscription's owner.
type proxyError struct {
	text   string
	failed bool // it is the proxy that failed, and not the target
	next   bool // it may not hold for another address of the target
	err    error
}

func (e *proxyError) Error() string { return e.text }
func (e *proxyError) Unwrap() error { return e.err }

// byProxy reports whether the operator's proxy is to blame for an attempt's error.
func byProxy(err error) bool {
	var failure *proxyError
	return errors.As(err, &failure) && failure.failed
}

// tunnel makes a connection to a target by CONNECT (RFC 9110, section 9.3.6), for http
// and https alike, so that the proxy never sees a request.
//
// The guard holds as it does without a proxy. The target's name is resolved here, and the
// proxy is asked for one of the addresses that may be called. It is never asked for the
// name, which could lead it elsewhere. The proxy's own address is the operator's choice
// and is not guarded.
func (p *proxy) tunnel(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	targets, err := p.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var kept *proxyError
	for i, target := range targets {
		conn, failure := p.connect(ctx, target, len(targets)-i)
		switch {
		case failure == nil:
			return conn, nil
		case !failure.next || ctx.Err() != nil:
			return nil, failure
		case kept == nil || kept.failed: // where it was let try, the target is to blame
			kept = failure
		}
	}
	return nil, kept
}

// resolve returns the addresses of the target that may be called, at least one and up
// to maxTunnelTries, or guard.ErrBlocked if there is none. If there are some of both
// families, both are among them: the proxy may have another one than we.
func (p *proxy) resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
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
	} else if found, err = p.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	var targets []netip.AddrPort
	for _, a := range found {
		a = a.Unmap()
		if p.policy.CheckAddr(a) != nil {
			continue
		}
		target := netip.AddrPortFrom(a, uint16(port))
		if len(targets) < maxTunnelTries {
			targets = append(targets, target)
		} else if !slices.ContainsFunc(targets, func(t netip.AddrPort) bool { return t.Addr().Is4() == a.Is4() }) {
			targets[maxTunnelTries-1] = target
		}
	}
	if targets == nil {
		return nil, guard.ErrBlocked
	}
	return targets, nil
}

// connect opens one tunnel. As long as other targets are left the proxy has only a part of
// the time: it may wait in vain for one that it does not reach.
func (p *proxy) connect(ctx context.Context, target netip.AddrPort, left int) (net.Conn, *proxyError) {
	conn, failure := p.open(ctx)
	if failure != nil {
		return nil, failure
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target.String()}, Host: target.String(), Header: p.header}
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	if failure := tunnelFailure(p.ask(ctx, conn, request)); failure != nil { //nolint:bodyclose // it is not read, and its connection closed or a tunnel's
		_ = conn.Close()
		return nil, failure
	}
	p.worked()
	return conn, nil
}

// errSpoke: the target has sent something before it was asked.
var errSpoke = errors.New("sender: the host spoke first")

// tunnelFailure says why what came of a CONNECT is no tunnel, or returns nil.
func tunnelFailure(answer *http.Response, more bool, err error) *proxyError {
	switch {
	case timedOut(err): // unless the proxy is found silent, and judge blames it
		return &proxyError{text: "the sender's proxy could not reach the host in time", next: true, err: err}
	case http1.ClosedByPeer(err):
		return &proxyError{text: "the sender's proxy broke the connection off, or its answer to CONNECT is not HTTP", failed: true, err: err}
	case err != nil:
		return &proxyError{text: "the proxy's answer to CONNECT is not HTTP", failed: true, err: err}
	}
	switch status := answer.StatusCode; {
	case status == http.StatusProxyAuthRequired:
		return &proxyError{text: "the sender's proxy asks for other credentials (407)", failed: true}
	case status < 200 || status >= 300:
		// It may forbid one address by its rules, and allow another.
		failed := refuses(status)
		return &proxyError{text: fmt.Sprintf("the sender's proxy made no connection: it answered %d", status), failed: failed, next: !failed || status == http.StatusForbidden}
	case more && (answer.ContentLength > 0 || len(answer.TransferEncoding) > 0): // which a proxy must not send
		return &proxyError{text: "the sender's proxy sent more than an answer to CONNECT", failed: true}
	case more: // it is the target's (RFC 9110, section 9.3.6). Neither HTTP nor TLS lets a server speak first
		return &proxyError{text: "the host spoke before it was asked", err: errSpoke}
	}
	return nil
}

// refuses reports whether a status that is no success tells of a proxy that does not
// make tunnels, or not for us. Other 5xx tell that it tried, and that the target failed.
func refuses(status int) bool {
	switch status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return true
	}
	return status < 500
}
