package http1

import (
	"errors"
	"net"
	"strings"
)

// ErrNotNegotiated: the server has chosen no protocol in the TLS handshake, although it
// must: see Client.Negotiated. Nothing was sent.
var ErrNotNegotiated = errors.New("http1: the server chose no protocol")

// ErrNotOffered: the TLS handshake failed because the server speaks none of the protocols
// that it was offered. Nothing was sent.
var ErrNotOffered = errors.New("http1: the server does not offer HTTP/1.1")

// ErrHandshake: the TLS handshake did not succeed. Nothing was sent.
var ErrHandshake = errors.New("http1: the TLS handshake did not succeed")

// NotOffered reports whether a TLS handshake has failed with err because the server speaks
// none of the protocols that it was offered. That is the alert no_application_protocol
// (RFC 7301, section 3.2). crypto/tls has no name for it. After the handshake the alert
// says nothing of the kind: a request may have been sent.
func NotOffered(err error) bool {
	alert, _ := Alert(err)
	return alert == "no application protocol"
}

// Alert returns the name of the alert by which the other side has ended TLS, and false if
// that is not what an error says. An alert says why the connection has ended.
func Alert(err error) (name string, ok bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return "", false
	}
	return strings.TrimPrefix(op.Err.Error(), "tls: "), true
}
