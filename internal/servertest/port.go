//go:build linux

package servertest

import (
	"syscall"
	"testing"
)

// Port returns a port of 127.0.0.1 on which nothing listens. Until the test ends the
// system gives it to nobody: a socket is bound to it. A server that names the port can
// listen there all the same, because both have SO_REUSEADDR.
func Port(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("servertest: a socket: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatalf("servertest: SO_REUSEADDR: %v", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("servertest: binding a port: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("servertest: the port that was bound: %v", err)
	}
	return name.(*syscall.SockaddrInet4).Port
}
