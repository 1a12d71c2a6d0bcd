package crash

import (
	"errors"
	"os"
	"syscall"
)

func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
}

var errNoPause = errors.New("crash: this system cannot stop a process and let it go on")

func pause(*os.Process) error { return errNoPause }

func resume(*os.Process) error { return errNoPause }

func receiveBuffer(socket uintptr, size int) error {
	return syscall.SetsockoptInt(syscall.Handle(socket), syscall.SOL_SOCKET, syscall.SO_RCVBUF, size)
}
