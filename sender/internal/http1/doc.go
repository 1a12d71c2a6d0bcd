// Package http1 makes HTTP/1.1 requests (RFC 9112) on connections that it keeps. What is
// written and what is read is net/http's: Request.Write and ReadResponse. Between the two
// stands one goroutine, the caller's, and the connection's own deadline, where
// net/http.Transport has two more goroutines for each connection and four contexts for
// each request, which take more of the processor than all else that a small request
// needs.
//
// It does less than net/http.Transport: no HTTP/2, no proxy, no compression, no upgrade,
// no Expect, and it never sends a request twice.
//
// An answer belongs to its request. A kept connection is looked at before it is used, also
// behind TLS: one that the server has closed, or on which it has sent something unasked,
// is given up. Where a system cannot look at a socket without waiting, it is read from for
// a millisecond.
//
// A server that closes a connection just as a request is sent on it makes that request
// fail (ErrClosedIdle). So that this is rare, a connection waits for its next request no
// longer than the server lets it, less a second: as the Keep-Alive header of its answers
// says, or as it was seen to do. A server that says nothing is taken for an impatient one,
// and one of its connections is watched, without being used, until it is closed.
package http1
