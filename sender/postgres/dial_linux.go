package postgres

import (
	"net"
	"syscall"
)

// tcpUserTimeout is TCP_USER_TIMEOUT (RFC 5482), which package syscall does not name.
const tcpUserTimeout = 18

func endSilence(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silence.Milliseconds()))
	})
}
