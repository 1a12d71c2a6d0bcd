package http1

import (
	"errors"
	"io"
)

// ErrClosedIdle is matched by the error of a request that was made on a connection which
// had been used before, and which the server closed before the first byte of an answer.
// Most likely it was closing it as idle when the request was sent. Whether it has read
// the request is not known.
var ErrClosedIdle = errors.New("http1: the server closed a connection that had been used before")

// ClosedByPeer reports whether an error of a connection means that the other side has
// ended it.
func ClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || unread(err)
}

// unread reports whether writing failed because the other side does not read any more:
// it may have answered.
func unread(err error) bool { return resetByPeer(err) || errors.Is(err, io.ErrClosedPipe) }
