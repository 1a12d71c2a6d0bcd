package sender

import (
	"context"
	"net"
	"sync/atomic"
)

// dialing is what the dispatcher's own transport tells of an attempt's way to a
// connection, which its error does not: a timeout looks the same while dialling as
// after the request was sent.
type dialing struct {
	begun     atomic.Bool
	connected atomic.Bool // somebody accepted
}

type dialingKey struct{}

func withDialing(ctx context.Context, d *dialing) context.Context {
	return context.WithValue(ctx, dialingKey{}, d)
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// telling makes a dial tell the attempt that it is made for.
func telling(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d, ok := ctx.Value(dialingKey{}).(*dialing)
		if !ok {
			return dial(ctx, network, address)
		}
		d.begun.Store(true)
		conn, err := dial(ctx, network, address)
		if err == nil {
			d.connected.Store(true)
		}
		return conn, err
	}
}

// unconfirmed makes a dial through a proxy tell the attempt that it is made for. That a
// connection was made is only what the proxy says, which may be next door.
func unconfirmed(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if d, ok := ctx.Value(dialingKey{}).(*dialing); ok {
			d.begun.Store(err != nil)
		}
		return conn, err
	}
}

// met is what an attempt tells of our own network: that it failed at connecting,
// that somebody answered, or neither, as when a request was sent and nothing came
// back.
//
// A proxy's failure tells of the proxy alone, and that a tunnel was closed tells of
// nobody. A host that a proxy tried in vain counts like one that was dialled in vain: if
// nobody answers any more, one way or the other, our side is cut off.
func (d *dialing) met(r *Result, proxied bool) (failedAtConnecting, answered bool) {
	switch {
	case r.ProxyFailed:
		return false, false
	case r.StatusCode != 0 || d.connected.Load():
		return false, true
	case r.Class == ClassDNS || r.Class == ClassConnect:
		return true, false
	case r.Class == ClassTimeout:
		return d.begun.Load(), false
	case r.Class == ClassTLS || r.Class == ClassReset && !proxied || r.Class == ClassProtocol:
		return false, true
	}
	return false, false
}
