//go:build unix

package porttest

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
)

// socket is bound and does not listen; nil if it was let go.
type socket struct{ file *os.File }

func (s socket) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// hold binds a port. Linux lets a socket listen on a port to which another one is bound
// if both are reusable and the other one does not listen, and does not assign such a
// port to others: socket(7), SO_REUSEADDR.
func hold(reusable bool) (*Held, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("porttest: %w", os.NewSyscallError("socket", err))
	}
	s := socket{os.NewFile(uintptr(fd), "held port")}
	address, err := bind(fd, reusable)
	if err != nil {
		_ = s.close()
		return nil, fmt.Errorf("porttest: %w", err)
	}
	if reusable && runtime.GOOS != "linux" {
		err, s = s.close(), socket{}
	}
	return &Held{Address: address.String(), socket: s}, err
}

func bind(fd int, reusable bool) (address netip.AddrPort, err error) {
	if reusable {
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
			return address, os.NewSyscallError("setsockopt", err)
		}
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return address, os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return address, os.NewSyscallError("getsockname", err)
	}
	at := bound.(*syscall.SockaddrInet4) // it was bound to one
	return netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)), nil
}
