package bedtest

import "net/http"

// TransportFunc is an http.RoundTripper.
type TransportFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f TransportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
