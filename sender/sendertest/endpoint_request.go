package sendertest

import (
	"bytes"
	"net/http"
	"time"
)

// Request is one request as it was received.
type Request struct {
	Method string
	Host   string // as the client named it, with the port
	Path   string // decoded, without the query
	Query  string // still encoded, without the question mark
	Header http.Header
	Body   []byte
	// ReceivedAt is when the request had been read. In a synctest bubble it is
	// the bubble's time.
	ReceivedAt time.Time
}

func (r Request) clone() Request {
	r.Header = r.Header.Clone()
	r.Body = bytes.Clone(r.Body)
	return r
}
