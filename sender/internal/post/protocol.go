package post

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
	"github.com/surehook/surehook/sender/internal/lru"
)

// mostOrigins bounds how many origins are remembered that do not choose HTTP/1.1.
const mostOrigins = 1024

// client makes attempts over HTTP/1.1, and over HTTP/2 to the origins that offer nothing
// else. Such an origin is known by the TLS handshake. It answers the offer of HTTP/1.1
// with the alert no_application_protocol, or it chooses nothing and then chooses HTTP/2 in
// a handshake that offers that. In neither case was anything sent to it before.
type client struct {
	*http1.Client
	second  *http2.Client
	origins *origins
}

// RoundTrip implements http.RoundTripper. The request's body must be readable still after
// it was closed unread.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.roundTrip(r, c.Client, c.second)
}

// anew makes attempts on connections that have not been used before.
type anew struct{ *client }

// RoundTrip implements http.RoundTripper.
func (a anew) RoundTrip(r *http.Request) (*http.Response, error) {
	return a.roundTrip(r, http1.Anew{Client: a.Client}, http2.Anew{Client: a.second})
}

// onNewConnection returns a transport that makes no attempt on a connection which has been
// used before, if it is one of ours.
func onNewConnection(t http.RoundTripper) http.RoundTripper {
	switch t := t.(type) {
	case *client:
		return anew{t}
	case *dedicatedTransport:
		return anewThrough{t}
	}
	return t
}

// anewThrough is anew for a transport with a proxy or a certificate.
type anewThrough struct{ *dedicatedTransport }

// RoundTrip implements http.RoundTripper.
func (a anewThrough) RoundTrip(r *http.Request) (*http.Response, error) {
	return a.through(r, anew{a.client})
}

func (c *client) roundTrip(r *http.Request, first, second http.RoundTripper) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return first.RoundTrip(r)
	}
	to := r.URL.Host
	var refused error // by a handshake that offered HTTP/1.1
	if !c.origins.only2(to) {
		answer, err := first.RoundTrip(r)
		if !errors.Is(err, http1.ErrNotOffered) && !errors.Is(err, http1.ErrNotNegotiated) {
			if err != nil {
				c.origins.forget(to) // perhaps it has begun to speak HTTP/2 alone
			}
			return answer, err
		}
		refused = err
	}
	answer, err := second.RoundTrip(r)
	_, undialled := errors.AsType[*http2.DialError](err)
	switch {
	case !undialled:
		if refused != nil {
			c.origins.remember(to, true)
		}
	case errors.Is(refused, http1.ErrNotNegotiated):
		// A server without the extension, or one that could not be asked. The latter is
		// forgotten if it does not answer in HTTP/1.1.
		c.origins.remember(to, false)
		if answer, err = first.RoundTrip(r); err != nil {
			c.origins.forget(to)
		}
		return answer, err
	case errors.Is(err, http2.ErrNotOffered) && refused != nil:
		return nil, errNeither
	case errors.Is(err, http2.ErrNotOffered): // any more
		c.origins.forget(to)
		return c.roundTrip(r, first, second)
	}
	if err != nil {
		err = &overHTTP2{err}
	}
	return answer, err
}

// CloseIdleConnections closes what is kept of both protocols.
func (c *client) CloseIdleConnections() {
	c.Client.CloseIdleConnections()
	c.second.CloseIdleConnections()
}

var errNeither = errors.New("sender: the server offers neither HTTP/1.1 nor HTTP/2")

// overHTTP2 is an error of an attempt that was made over HTTP/2.
type overHTTP2 struct{ err error }

func (e *overHTTP2) Error() string { return fmt.Sprintf("over HTTP/2: %v", e.err) }
func (e *overHTTP2) Unwrap() error { return e.err }

// spokeHTTP2 reports whether an attempt was made over HTTP/2.
func spokeHTTP2(answer *http.Response, err error) bool {
	if err == nil {
		return answer.ProtoMajor == 2
	}
	_, over := errors.AsType[*overHTTP2](err)
	return over
}

// origins remembers which hosts and ports speak HTTP/2 alone, true, and which speak
// HTTP/1.1 although they choose no protocol, false. Finding it out costs a handshake. It is
// safe for concurrent use.
type origins struct {
	mu  sync.Mutex
	all *lru.Map[string, bool]
}

func newOrigins() *origins { return &origins{all: lru.New[string, bool](mostOrigins)} }

func (o *origins) get(host string) (only2, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Get(host)
}

func (o *origins) only2(host string) bool {
	only2, _ := o.get(host)
	return only2
}

// unknown is for http1.Client.Negotiated.
func (o *origins) unknown(host string) bool {
	_, known := o.get(host)
	return !known
}

func (o *origins) remember(host string, only2 bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Put(host, only2)
}

func (o *origins) forget(host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Delete(host)
}
