//go:build !unix

package http1

import "syscall"

// nothingCame cannot look without waiting here. A request on a connection that the server
// has closed fails, and is made again later.
func nothingCame(syscall.RawConn) func() bool { return func() bool { return true } }
