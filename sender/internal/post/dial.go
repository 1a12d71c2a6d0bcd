package post

import (
	"context"
	"net"
	"sync/atomic"
)

// Dialing is what the poster's own transports tell of an attempt's way to a connection.
// Its error does not: a timeout looks the same while dialling as after the request was
// sent. An unguarded transport tells nothing.
type Dialing struct {
	Begun     atomic.Bool // and through a proxy: in vain
	Connected atomic.Bool // somebody accepted
}

type dialingKey struct{}

// WithDialing returns the context of one attempt, which tells d of its way.
func WithDialing(ctx context.Context, d *Dialing) context.Context {
	return context.WithValue(ctx, dialingKey{}, d)
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// reporting makes a dial tell the attempt that it is made for.
func reporting(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d, ok := ctx.Value(dialingKey{}).(*Dialing)
		if !ok {
			return dial(ctx, network, address)
		}
		d.Begun.Store(true)
		conn, err := dial(ctx, network, address)
		if err == nil {
			d.Connected.Store(true)
		}
		return conn, err
	}
}

// unconfirmed makes a dial through a proxy tell the attempt that it is made for. That a
// connection was made is only what the proxy says, which may be next door.
func unconfirmed(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if d, ok := ctx.Value(dialingKey{}).(*Dialing); ok {
			d.Begun.Store(err != nil)
		}
		return conn, err
	}
}
