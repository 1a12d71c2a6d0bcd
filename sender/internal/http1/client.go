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
	// Negotiated reports whether a server must choose a protocol in the TLS
	// handshake (RFC 7301). It is called if a server chose none. If it returns true
	// the request fails with ErrNotNegotiated, and the connection is kept for a
	// request that is made when it returns false. nil: no server must.
	Negotiated func(host string) bool
	// MaxIdle bounds the connections that are kept for later, in all. The one that
	// has waited longest is closed first.
	MaxIdle int
	// IdleTimeout bounds how long an unused connection is kept. It is kept for less
	// if its server closes connections earlier: as the Keep-Alive header of its
	// answers says, or as the client has observed.
	IdleTimeout time.Duration
	// MaxAge bounds the age of a kept connection, so that a host's new addresses
	// are noticed. 0: there is no bound.
	MaxAge time.Duration
	// MaxHeader bounds an answer's status line and headers, those of interim answers
	// included, in bytes.
	MaxHeader int64

	endings endings

	mu       sync.Mutex
	idle     pool
	watched  map[*conn]bool // see watch
	habits   *lru.Map[origin, *habit]
	closing  bool // CloseIdleConnections was called, and nothing has begun since
	sweeping bool // sweep will be called
}

// RoundTrip implements http.RoundTripper. The request's context counts until the
// answer's body has been read to its end or closed, and the caller must do one of
// these. The context's deadline counts even if the context does not end at it. Errors
// are the connection's, net/http's when it reads the answer, or the context's if it has
// ended.
//
// A server may answer before it has read a long body. After an answer of success the end of
// the answer's body comes when the server has the request, too; ErrNotTaken, if it does not
// take it in time.
//
// It calls these functions of an httptrace.ClientTrace in the context: GotConn,
// WroteHeaders, WroteRequest, GotFirstResponseByte and those of the TLS handshake.
// Package net calls those of dialling.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) { return c.roundTrip(r, true) }

// Anew makes requests like its client, but only on new connections.
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
	c.endings.add(x)
	answer, err := x.make(r, trace)
	if err != nil {
		err = x.why(err)
		x.end(err)
		return nil, err
	}
	return answer, nil
}

// CloseIdleConnections closes the kept connections. Until another request begins, the
// connections of the requests under way are closed, too, instead of kept.
func (c *Client) CloseIdleConnections() {
	c.mu.Lock()
	c.closing = true
	all := c.idle.removeOldest(c.idle.n)
	all = slices.AppendSeq(all, maps.Keys(c.watched))
	clear(c.watched)
	c.mu.Unlock()
	closeAll(all)
}

// connect returns a kept connection that looks alive, or a new one, with the deadline
// of ctx.
func (c *Client) connect(ctx context.Context, u *url.URL, reuse bool, trace *httptrace.ClientTrace) (cn *conn, err error) {
	to := origin{u.Scheme, u.Host}
	if reuse {
		cn = c.take(to)
	} else {
		c.begins()
	}
	for ; cn != nil; cn = c.take(to) {
		if !c.undecided(cn) {
			if cn.alive() {
				break
			}
			c.surprised(cn)
		}
		cn.cut()
	}
	if cn == nil {
		if cn, err = c.dial(ctx, to, u, trace); err != nil {
			return nil, err
		}
	}
	deadline, _ := ctx.Deadline()
	if err := cn.SetDeadline(deadline); err != nil {
		cn.cut()
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
		if NotOffered(err) {
			return nil, fmt.Errorf("%w: %w", ErrNotOffered, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	}
	cn := c.known(newConn(secure, to))
	cn.unchosen = secure.ConnectionState().NegotiatedProtocol == ""
	if c.undecided(cn) {
		c.put(cn) // for a request that is made when that has been found out
		return nil, ErrNotNegotiated
	}
	return cn, nil
}

// undecided reports whether it must be found out first that a connection's server speaks
// HTTP/1.1.
func (c *Client) undecided(cn *conn) bool {
	return cn.unchosen && !cn.used && c.Negotiated != nil && c.Negotiated(cn.to.host)
}
