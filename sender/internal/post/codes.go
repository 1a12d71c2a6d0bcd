package post

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// codes are the numbers by which an operating system says why there is no connection.
type codes struct {
	lacks       []syscall.Errno // it has nothing left for another connection
	noPort      syscall.Errno   // it has no local port left, if it is said of an address of IPv4
	refused     syscall.Errno
	unreachable []syscall.Errno
	down        syscall.Errno // its network
}

// system are the codes of the system that the program runs on.
var system = codesOf(runtime.GOOS)

// codesOf returns the codes of Windows as numbers, because its calls return none of those that
// package syscall has under the names of Unix.
func codesOf(goos string) codes {
	if goos == "windows" {
		return codes{
			lacks: []syscall.Errno{
				4,     // ERROR_TOO_MANY_OPEN_FILES
				8,     // ERROR_NOT_ENOUGH_MEMORY
				1450,  // ERROR_NO_SYSTEM_RESOURCES
				10024, // WSAEMFILE
				10055, // WSAENOBUFS, also if no local port is left
			},
			noPort:  10048, // WSAEADDRINUSE. WSAEADDRNOTAVAIL says that the remote address is not valid
			refused: 10061, // WSAECONNREFUSED
			unreachable: []syscall.Errno{
				10051, // WSAENETUNREACH
				10065, // WSAEHOSTUNREACH
			},
			down: 10050, // WSAENETDOWN
		}
	}
	return codes{
		lacks:       []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM},
		noPort:      syscall.EADDRNOTAVAIL,
		refused:     syscall.ECONNREFUSED,
		unreachable: []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH},
		down:        syscall.ENETDOWN,
	}
}

// exhausted reports whether no connection could be made because this machine had no
// descriptors, memory or local ports left for it. A failed look-up of a name wraps nothing, and
// has the cause in its text alone.
func (c *codes) exhausted(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return slices.ContainsFunc(c.lacks, func(e syscall.Errno) bool { return strings.Contains(dns.Err, e.Error()) })
	}
	return isAny(err, c.lacks) || c.portless(err)
}

// portless reports whether this machine had no local port left for a connection. On a machine
// without IPv6, all addresses of IPv6 have the same error: they do not count.
func (c *codes) portless(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !errors.Is(err, c.noPort) {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() != nil
}

// cutOff reports whether there is no way to the host, or none any more. Routers on the way say
// so too: it is no proof that our own network fails.
func (c *codes) cutOff(err error) bool { return isAny(err, c.unreachable) || errors.Is(err, c.down) }

// text says for the subscription's owner why no connection could be made.
func (c *codes) text(err error) string {
	switch {
	case errors.Is(err, c.refused):
		return "the connection was refused"
	case isAny(err, c.unreachable):
		return "the host cannot be reached"
	}
	return "no connection could be made"
}

func isAny(err error, all []syscall.Errno) bool {
	return slices.ContainsFunc(all, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
