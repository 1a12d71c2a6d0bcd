package pgtest

import (
	"context"
	"net"
	"sync/atomic"
)

// Dial opens a connection, as the DialFunc of pgx does.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Sends returns a Dial, and counts the writes on the connections that it opens: each
// trip to the server begins with one. It leaves out the writes for which counts returns
// false; a nil counts counts all.
func Sends(dial Dial, counts func(sent []byte) bool) (Dial, *atomic.Int64) {
	n := &atomic.Int64{}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return sends{c, n, counts}, err
	}, n
}

type sends struct {
	net.Conn
	n      *atomic.Int64
	counts func([]byte) bool
}

func (c sends) Write(b []byte) (int, error) {
	if c.counts == nil || c.counts(b) {
		c.n.Add(1)
	}
	return c.Conn.Write(b)
}
