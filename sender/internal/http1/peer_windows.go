package http1

import (
	"errors"
	"syscall"
)

// resetByPeer reports whether an error says that the other side has ended the
// connection. Windows has codes of its own for it.
func resetByPeer(err error) bool {
	return errors.Is(err, syscall.WSAECONNRESET) || errors.Is(err, syscall.WSAECONNABORTED) || errors.Is(err, syscall.EPIPE)
}
