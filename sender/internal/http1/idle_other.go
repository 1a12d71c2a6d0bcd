//go:build !unix

package http1

import "net"

// socketIsQuiet cannot look at a socket without waiting on these systems: see conn.alive.
func socketIsQuiet(net.Conn) func() bool { return nil }
