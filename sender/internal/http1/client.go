package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/internal/lru"
)

// Client makes requests. It is safe for concurrent use. Its fields must not be changed
// once it is used.
type Client struct {
	// Dial makes a connection to "host:port". Its context ends at the request's deadline,
	// or with the request's context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for https. Unless it has a ServerName, that is the URL's host.
	TLS *tls.Config
	// Negotiated reports whether a server must have chosen a protocol in the TLS handshake
	// (RFC 7301) for its connection to be used. It is asked where a server chose none; if it
	// must, the request fails with ErrNotNegotiated, and its connection is kept for another
	// one. nil: none must.
	Negotiated func(host string) bool
	// MaxIdle is how many connections are kept for later, in all. Those that have waited
	// longest go first.
	MaxIdle int
	// IdleTimeout is the most for which one is kept that is not used. Servers that close
	// theirs earlier are heeded: by the Keep-Alive header of their answers, or by what they
	// were seen to do.
	IdleTimeout time.Duration
	// MaxAge is how old a connection may be that is kept, so that a host's new addresses
	// are noticed. 0: as old as it gets.
	MaxAge time.Duration
	// MaxHeader bounds an answer's status line and headers, those of interim answers
	// included, in bytes.
	MaxHeader int64

	mu       sync.Mutex
	idle     pool
	watched  map[*conn]bool // see watch
	habits   *lru.Map[origin, *habit]
	closing  bool // CloseIdleConnections was called, and nothing has begun since
	sweeping bool // sweep will be called
}

// RoundTrip implements http.RoundTripper. The request's context holds until the answer's
// body has been read to its end or closed, which is the caller's duty; its deadline does
// even if it is one at which the context does not end. Errors are those of the
// connection, of net/http's reading of the answer, or of the context if it has ended.
//
// An httptrace.ClientTrace in the context is told of GotConn, the TLS handshake,
// WroteHeaders, WroteRequest and GotFirstResponseByte, and by package net of what belongs
// to dialling.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) { return c.roundTrip(r, true) }

// Anew makes requests as its client does, on connections that have not been used before.
type Anew struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (a Anew) RoundTrip(r *http.Request) (*http.Response, error) { return a.roundTrip(r, false) }

func (c *Client) roundTrip(r *http.Request, reuse bool) (*http.Response, error) {
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	cn, err := c.connect(ctx, r.URL, reuse, trace)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	x := &exchange{client: c, conn: cn, ctx: ctx}
	if ctx.Done() != nil {
		x.stop = context.AfterFunc(ctx, cn.abort)
	}
	answer, err := x.make(r, trace)
	if err != nil {
		err = x.why(err)
		x.end(err)
		return nil, err
	}
	return answer, nil
}

// CloseIdleConnections closes what is kept, and what would be kept of the requests that
// are under way, until another one begins.
func (c *Client) CloseIdleConnections() {
	c.mu.Lock()
	c.closing = true
	all := c.idle.removeOldest(c.idle.n)
	all = slices.AppendSeq(all, maps.Keys(c.watched))
	clear(c.watched)
	c.mu.Unlock()
	closeAll(all)
}

// connect returns a connection that is kept and looks alive, or a new one, with the
// deadline of ctx.
func (c *Client) connect(ctx context.Context, u *url.URL, reuse bool, trace *httptrace.ClientTrace) (cn *conn, err error) {
	to := origin{u.Scheme, u.Host}
	if reuse {
		cn = c.take(to)
	} else {
		c.begins()
	}
	for cn != nil && !cn.alive() {
		c.surprised(cn)
		_ = cn.Close()
		cn = c.take(to)
	}
	if cn == nil {
		if cn, err = c.dial(ctx, to, u, trace); err != nil {
			return nil, err
		}
	}
	deadline, _ := ctx.Deadline()
	if err := cn.SetDeadline(deadline); err != nil {
		_ = cn.Close()
		return nil, err
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: cn.Conn, Reused: cn.used, WasIdle: cn.used})
	}
	return cn, nil
}

func (c *Client) dial(ctx context.Context, to origin, u *url.URL, trace *httptrace.ClientTrace) (*conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("http1: the URL's scheme is %q: it must be http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("http1: the URL has no host")
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	network, err := c.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" {
		return c.known(newConn(network, to)), nil
	}
	config := c.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = u.Hostname()
	}
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	secure := tls.Client(network, config)
	err = secure.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(secure.ConnectionState(), err)
	}
	if err != nil {
		_ = network.Close()
		return nil, err
	}
	cn := c.known(newConn(secure, to))
	if c.Negotiated != nil && secure.ConnectionState().NegotiatedProtocol == "" && c.Negotiated(to.host) {
		c.put(cn) // for a request that is made when that has been found out
		return nil, ErrNotNegotiated
	}
	return cn, nil
}
