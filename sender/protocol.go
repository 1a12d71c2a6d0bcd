package sender

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
	"github.com/surehook/surehook/sender/internal/lru"
)

// mostOrigins bounds how many origins are remembered that offer no HTTP/1.1.
const mostOrigins = 1024

// client makes attempts over HTTP/1.1, and over HTTP/2 to the origins that offer nothing
// else. It dials once more for an origin that turns out to be one of these: nothing was
// sent to it before.
type client struct {
	*http1.Client
	second *http2.Client
	only2  *origins
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
	case *ownTransport:
		return anew{t.client}
	}
	return t
}

func (c *client) roundTrip(r *http.Request, first, second http.RoundTripper) (*http.Response, error) {
	to := r.URL.Host
	asked := false
	if !c.only2.has(to) {
		answer, err := first.RoundTrip(r)
		if !http1.NotOffered(err) {
			return answer, err
		}
		asked = true
	}
	answer, err := second.RoundTrip(r)
	switch {
	case errors.Is(err, http2.ErrNotOffered) && asked:
		return nil, errNeither
	case errors.Is(err, http2.ErrNotOffered): // any more
		c.only2.forget(to)
		if answer, err = first.RoundTrip(r); http1.NotOffered(err) {
			err = errNeither
		}
		return answer, err
	case asked:
		c.only2.remember(to)
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
	var over *overHTTP2
	return answer != nil && answer.ProtoMajor == 2 || errors.As(err, &over)
}

// origins remembers hosts and ports.
type origins struct {
	mu  sync.Mutex
	all *lru.Map[string, bool]
}

func newOrigins() *origins { return &origins{all: lru.New[string, bool](mostOrigins)} }

func (o *origins) has(host string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all.Get(host)
	return ok
}

func (o *origins) remember(host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Put(host, true)
}

func (o *origins) forget(host string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Delete(host)
}
