//go:build unix

package http1

import (
	"net"
	"syscall"
)

// socketIsQuiet returns a function that reports whether a connection's socket is open
// and has nothing to read. It may take a byte, which is lost. socketIsQuiet returns nil
// if the connection has no socket.
func socketIsQuiet(network net.Conn) func() bool {
	c, ok := network.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	var quiet bool
	var b [1]byte
	look := func(fd uintptr) bool {
		n, err := syscall.Read(int(fd), b[:]) // it does not wait: package net has set it so
		quiet = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
		return true
	}
	return func() bool { return raw.Read(look) == nil && quiet }
}
