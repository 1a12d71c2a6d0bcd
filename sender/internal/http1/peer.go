package http1

import (
	"errors"
	"io"
)

// ErrClosedIdle: the server closed a connection that had been used before, before the
// first byte of an answer, or with the answer 408 Request Timeout. Most likely it was closing
// the connection as idle when the request was sent. It may have read the request or not.
var ErrClosedIdle = errors.New("http1: the server closed a connection that had been used before")

// ClosedByPeer reports whether a connection's error means that the other side has
// closed or reset it.
func ClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || unread(err)
}

// unread reports whether writing failed because the other side does not read any more:
// it may have answered.
func unread(err error) bool { return resetByPeer(err) || errors.Is(err, io.ErrClosedPipe) }
