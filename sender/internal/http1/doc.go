// Package http1 makes HTTP/1.1 requests (RFC 9112) on connections that it keeps. It writes
// and reads what has the usual form itself, as net/http's Request.Write and ReadResponse
// would, which do the rest. An exchange runs on the caller's goroutine, under the
// connection's own deadline. net/http.Transport uses two more goroutines for each
// connection and four contexts for each request. These take more of the processor than the
// rest of a small request.
//
// It does less than net/http.Transport: no HTTP/2, no proxy, no compression, no upgrade,
// no Expect, and it never sends a request twice.
//
// No request gets another request's answer. The client looks at a kept connection
// before it uses it, also behind TLS, and gives it up if the server has closed it, or
// has sent something unasked. If the system cannot look at a socket without waiting,
// the client reads from it for a millisecond.
//
// A request fails (ErrClosedIdle) if the server closes its connection just as the
// request is sent. To make that rare, the client keeps a connection a second less than
// the server does: as the Keep-Alive header of its answers says, or as the client has
// observed. The client takes a server that says nothing for an impatient one, and
// watches one of its connections, unused, until the server closes it.
package http1
