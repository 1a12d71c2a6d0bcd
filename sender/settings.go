package sender

import "time"

// Settings adjust how the deliveries of one subscription are posted. Zero fields
// mean what the dispatcher does for all.
type Settings struct {
	// Headers are sent with every attempt, besides the library's own.
	Headers map[string]string

	// MaxInFlight bounds the attempts in flight, across all processes. 0: as many
	// as it earns by answering fast, up to DispatcherConfig.PerSubscription in each
	// process.
	MaxInFlight int

	// Rate bounds the attempts a second, across all processes. 0: not bounded.
	Rate float64

	// Timeout bounds an attempt. It can only be shorter than the dispatcher's.
	Timeout time.Duration

	// Proxy is the name of one of DispatcherConfig.Proxies, to post through.
	Proxy string

	// SealedCertificate is the client certificate and its private key, as a
	// Registry sealed them. Empty: none.
	SealedCertificate []byte
}
