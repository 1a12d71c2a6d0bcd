package postgres

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// A firewall that forgets a connection, or a machine that is gone, answers nothing. A
	// connection of the dispatchers is given up when the other side has confirmed nothing for
	// this long, though it was sent something. A server that is busy with a statement takes
	// no more of what is sent after it, and that looks the same, so this is not shorter.
	silence = 20 * time.Second

	// The system asks the other side of a quiet connection this often whether it is there. The
	// connection ends after this many questions without an answer. On Linux the time of
	// silence counts, and not their number.
	probeEvery = 5 * time.Second
	probes     = 3
)

// impatiently makes connections that notice soon that nobody is there any more. By
// themselves systems keep sending for a quarter of an hour.
func impatiently(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		// A connection of another kind, such as one of a connector of a cloud, does as it
		// likes. So does one that refuses: it works all the same.
		if tcp, ok := c.(*net.TCPConn); ok && err == nil {
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: probeEvery, Interval: probeEvery, Count: probes})
			endSilence(tcp)
		}
		return c, err
	}
}
