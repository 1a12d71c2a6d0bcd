// Package http2 makes requests over HTTP/2 (RFC 9113), for servers that offer nothing
// else. The protocol is net/http's; a connection is a net/http.ClientConn, which sends
// each request on one stream and never again. This package dials the connections, with
// the caller's dialler, and keeps them.
//
// It knows https alone. Each answer belongs to a stream, so bytes that a server sends
// unasked cannot be taken for the answer to another request.
package http2
