//go:build unix

package http1

import "syscall"

// nothingCame reports whether a connection is open and has nothing to be read. If there
// is something it is lost.
func nothingCame(raw syscall.RawConn) func() bool {
	var nothing bool
	var b [1]byte
	look := func(fd uintptr) bool {
		n, err := syscall.Read(int(fd), b[:]) // which does not wait: package net has set it so
		nothing = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
		return true
	}
	return func() bool { return raw.Read(look) == nil && nothing }
}
