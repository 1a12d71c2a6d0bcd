// Package http2 makes requests over HTTP/2 (RFC 9113), for servers that offer nothing
// else. net/http implements the protocol: a connection is a net/http.ClientConn, which
// sends each request on one stream, and never twice. This package dials the
// connections, with the caller's dialler, and keeps them.
//
// It serves https alone. Each answer belongs to a stream, so bytes that a server sends
// unasked are never taken for an answer to another request. A connection whose server sends
// far more than answers is closed.
package http2
