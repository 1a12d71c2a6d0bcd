package http2

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/internal/http1"
)

// Client makes requests. It is safe for concurrent use. Its fields must not be changed
// once it is used.
type Client struct {
	// Dial makes a connection to "host:port". Its context ends at the request's deadline,
	// or with the request's context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the configuration for connections; its NextProtos do not count. Unless
	// it has a ServerName, that is the URL's host.
	TLS *tls.Config
	// MaxIdle bounds the unused connections that are kept, in all. The one that has
	// waited longest is closed first.
	MaxIdle int
	// IdleTimeout bounds how long an unused connection is kept.
	IdleTimeout time.Duration
	// MaxAge bounds the age of a connection on which a request is begun, so that a
	// host's new addresses are noticed.
	MaxAge time.Duration
	// MaxHeader bounds an answer's headers, in bytes.
	MaxHeader int64

	once      sync.Once
	transport *http.Transport // used only to speak HTTP/2 on connections

	mu       sync.Mutex
	conns    map[string][]*conn // by host and port, the one made last at the end
	closing  bool               // CloseIdleConnections was called, and nothing has begun since
	sweeping bool               // sweep will be called
}

// DialError tells that no connection could be made for a request. Nothing was sent.
type DialError struct{ err error }

func (e *DialError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *DialError) Unwrap() error { return e.err }

// ErrNotOffered: the server does not speak HTTP/2. Nothing was sent.
var ErrNotOffered = errors.New("http2: the server does not offer HTTP/2")

// RoundTrip implements http.RoundTripper. The request's context counts until the
// answer's body has been read to its end or closed, and the caller must do one of
// these. The context's deadline counts even if the context does not end at it. Errors
// are the connection's, or the context's if it has ended, or match ErrRefused, ErrReset,
// ErrLongRequest, ErrTooMuch or an error of package http1. If no connection could be made
// the error is a *DialError, which may match ErrNotOffered.
//
// If a connection that was kept takes no more streams just when the request is made, a new
// one is made at once. Then nothing was sent on the first one. For that the request's body
// must be readable still after it was closed unread.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) { return c.roundTrip(r, true) }

// Anew makes requests like its client, but only on new connections.
type Anew struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (a Anew) RoundTrip(r *http.Request) (*http.Response, error) { return a.roundTrip(r, false) }

func (c *Client) roundTrip(r *http.Request, reuse bool) (*http.Response, error) {
	answer, err := c.try(r, reuse)
	if reuse && errors.Is(err, errUnsent) {
		return c.try(r, false)
	}
	return answer, err
}

func (c *Client) try(r *http.Request, reuse bool) (*http.Response, error) {
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	}
	cn, reused, err := c.connect(ctx, r.URL, reuse)
	if err != nil {
		cancel()
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, &DialError{err}
	}
	x := &exchange{client: c, conn: cn, reused: reused, ctx: ctx, cancel: cancel}
	return x.make(r.WithContext(ctx))
}

// connect returns a connection with room for one stream, which is reserved.
func (c *Client) connect(ctx context.Context, u *url.URL, reuse bool) (cn *conn, reused bool, err error) {
	if u.Scheme != "https" || u.Hostname() == "" {
		return nil, false, fmt.Errorf("http2: the URL's scheme is %q: it must be https, with a host", u.Scheme)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	cn = c.take(address, reuse)
	if reused = cn != nil; !reused {
		if cn, err = c.dial(ctx, address); err != nil {
			return nil, false, err
		}
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: cn.network, Reused: reused})
	}
	return cn, reused, nil
}

// maxUnread bounds how much of an answer is in memory and not read yet. net/http's 4 MiB
// would let each attempt under way take as much.
const maxUnread = 64 << 10

type networkKey struct{}

func (c *Client) dial(ctx context.Context, address string) (*conn, error) {
	c.once.Do(func() {
		c.transport = &http.Transport{
			Protocols: new(http.Protocols), DialTLSContext: c.secure,
			DisableCompression: true, MaxResponseHeaderBytes: c.MaxHeader,
			HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread},
		}
		// secure makes sure of HTTP/2 itself. It returns no *tls.Conn, so that net/http
		// takes the connection for one in clear.
		c.transport.Protocols.SetUnencryptedHTTP2(true)
		c.transport.Protocols.SetHTTP2(true)
	})
	var network *meter
	made, err := c.transport.NewClientConn(context.WithValue(ctx, networkKey{}, &network), "https", address)
	if err != nil {
		return nil, err
	}
	cn := &conn{ClientConn: made, network: network, address: address, made: time.Now()}
	if err := cn.Reserve(); err != nil {
		_ = cn.Close()
		return nil, fmt.Errorf("%w: %w", ErrReset, err)
	}
	c.add(cn)
	return cn, nil
}

// secure dials, and makes the TLS handshake.
func (c *Client) secure(ctx context.Context, network, address string) (net.Conn, error) {
	below, err := c.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := c.TLS.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	conn := tls.Client(below, config)
	err = conn.HandshakeContext(ctx)
	state := conn.ConnectionState()
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(state, err)
	}
	switch {
	case http1.NotOffered(err) || err == nil && state.NegotiatedProtocol != "h2":
		err = ErrNotOffered
	case err != nil:
		err = fmt.Errorf("%w: %w", http1.ErrHandshake, err)
	}
	if err != nil {
		_ = below.Close()
		return nil, err
	}
	metered := &meter{Conn: conn}
	metered.left.Store(c.allowance())
	*ctx.Value(networkKey{}).(**meter) = metered
	return metered, nil
}
