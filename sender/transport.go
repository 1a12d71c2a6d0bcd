package sender

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/surehook/surehook/internal/guard"
)

// newTransport returns the transport that attempts use unless they are given
// another.
//
//   - The guard sees the address of every connection that is tried, after the
//     name was resolved, so a name that resolves to something else at the second
//     look-up gains nothing. No proxy: the guard would see the proxy's address.
//   - HTTP/1.1 alone: the HTTP/2 client sends a request again on its own, up to
//     seven times, which would be more POSTs on the wire than recorded attempts.
//   - Idle connections are closed before most servers close them (60 s and
//     more), so that a request rarely meets one that is just being closed.
//   - What the answer is compressed with does not matter: it is kept as it is.
func newTransport(policy guard.Policy, timeout time.Duration, places int) *http.Transport {
	dialer := &net.Dialer{
		Timeout:        timeout,
		ControlContext: policy.Control,
		Resolver:       &net.Resolver{PreferGo: true},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            telling(dialer.DialContext),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    timeout,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxIdleConns:           4 * places,
		MaxIdleConnsPerHost:    places,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        4 << 10,
		ReadBufferSize:         4 << 10,
	}
}
