//go:build unix

package crash

import (
	"os"
	"syscall"
)

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

func receiveBuffer(socket uintptr, size int) error {
	return syscall.SetsockoptInt(int(socket), syscall.SOL_SOCKET, syscall.SO_RCVBUF, size)
}
