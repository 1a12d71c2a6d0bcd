//go:build !windows

package http1

import (
	"errors"
	"syscall"
)

// resetByPeer reports whether an error says that the other side has ended the
// connection.
func resetByPeer(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
