// Package http1 makes HTTP/1.1 requests (RFC 9112) on connections that it keeps. What is
// written and what is read is net/http's: Request.Write and ReadResponse. Between the two
// stands one goroutine, the caller's, and the connection's own deadline, where
// net/http.Transport has two more goroutines for each connection and four contexts for
// each request, which take more of the processor than all else that a small request
// needs.
//
// It does less than net/http.Transport: no HTTP/2, no proxy, no compression, no upgrade,
// no Expect, and it never sends a request twice. A request whose connection turns out to
// be closed fails. So that this is rare, a kept connection is looked at before it is
// used: one that the server has closed, or on which it has sent something unasked, is
// given up.
package http1
