//go:build !linux

package postgres

import "net"

// endSilence leaves the connection as it is: this system has no such setting.
func endSilence(*net.TCPConn) {}
