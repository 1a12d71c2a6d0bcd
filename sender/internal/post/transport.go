package post

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
)

// maxTries bounds how many of a host's addresses are tried to make one connection, of each
// family. A name can have thousands, which are not all its owner's.
const maxTries = 8

// maxHeader bounds the headers of an answer, in bytes.
const maxHeader = 64 << 10

var errTries = errors.New("sender: no more of the host's addresses are tried")

type triesKey struct{}

// tries counts those of one connection. Each family has a bound of its own: where IPv6 does
// not work, its addresses can all fail at once, before the first one of IPv4 is tried.
type tries struct {
	of4, of6 atomic.Int32
	failed   atomic.Pointer[error] // the first one of an address that may be called
	lacked   atomic.Pointer[error] // the first one that this machine is to blame for
}

func (t *tries) more(network string) bool {
	if network == "tcp4" {
		return t.of4.Add(1) <= maxTries
	}
	return t.of6.Add(1) <= maxTries
}

// ended is for httptrace.ClientTrace.ConnectDone.
func (t *tries) ended(_, _ string, err error) {
	switch {
	case err == nil, errors.Is(err, guard.ErrBlocked), errors.Is(err, errTries):
	case system.exhausted(err):
		t.lacked.CompareAndSwap(nil, &err)
	default:
		t.failed.CompareAndSwap(nil, &err)
	}
}

// newDialer returns what attempts without a proxy are dialled with. The guard sees
// the address of every connection that is tried, after the name was resolved, so a
// name that resolves to something else at the second look-up gains nothing.
func newDialer(policy guard.Policy, timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:  timeout,
		Resolver: &net.Resolver{PreferGo: true},
		ControlContext: func(ctx context.Context, network, address string, conn syscall.RawConn) error {
			if err := policy.Control(ctx, network, address, conn); err != nil {
				return err
			}
			if t, ok := ctx.Value(triesKey{}).(*tries); ok && !t.more(network) {
				return errTries
			}
			return nil
		},
	}
}

// bounded makes a dialer of newDialer try no more than maxTries addresses of a family. If a
// host has addresses that may be called, the error is that of one of these: one for which this
// machine lacked something, if there is one, since the host might have answered there. Package
// net returns that of the first address.
func bounded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		t := new(tries)
		ctx = httptrace.WithClientTrace(context.WithValue(ctx, triesKey{}, t), &httptrace.ClientTrace{ConnectDone: t.ended})
		conn, err := dial(ctx, network, address)
		lacked, failed := t.lacked.Load(), t.failed.Load()
		switch {
		case err == nil:
		case lacked != nil:
			err = *lacked
		case failed != nil && errors.Is(err, guard.ErrBlocked):
			err = *failed
		}
		return conn, err
	}
}

// newTransport returns the transport that attempts use unless they are given
// another.
//
//   - No proxy: the guard would see the proxy's address.
//   - HTTP/1.1 is offered alone, because it costs less. HTTP/2 is for servers that offer
//     nothing else.
//   - An idle connection is given up before its server closes it, as far as that can be
//     known, so that a request rarely meets one that is just being closed.
//   - No connection grows old, so that a host's new addresses are noticed.
//   - An answer is not decompressed: it is kept as it is.
func newTransport(dialer *net.Dialer, places int, known *origins) *client {
	first := &http1.Client{
		Dial:        reporting(bounded(dialer.DialContext)),
		TLS:         &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		Negotiated:  known.unknown,
		MaxIdle:     4 * places,
		IdleTimeout: 30 * time.Second,
		MaxAge:      5 * time.Minute,
		MaxHeader:   maxHeader,
	}
	second := &http2.Client{
		// The other client's Dial may be replaced later: this one then uses the new one,
		// too.
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return first.Dial(ctx, network, address)
		},
		TLS: first.TLS, MaxIdle: places, IdleTimeout: first.IdleTimeout, MaxAge: first.MaxAge, MaxHeader: maxHeader,
	}
	return &client{Client: first, second: second, origins: known}
}

// until is a context with a deadline at which it does not end. For http1.Client that is
// enough, and a timer for each attempt would cost more than the rest of the context.
type until struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.deadline, true }
