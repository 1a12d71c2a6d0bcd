package http1

import (
	"errors"
	"net"
	"strings"
)

// ErrNotNegotiated: the server has chosen no protocol in the TLS handshake, although it
// must: see Client.Negotiated. Nothing was sent.
var ErrNotNegotiated = errors.New("http1: the server chose no protocol")

// NotOffered reports whether a TLS handshake failed because the server speaks none of the
// protocols that it was offered: the alert no_application_protocol (RFC 7301, section
// 3.2). crypto/tls has no name for it.
func NotOffered(err error) bool {
	return isAlert(err) && strings.HasSuffix(err.Error(), "tls: no application protocol")
}

// isAlert reports whether the other side has sent an alert of TLS. An alert says why
// the connection has ended.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
