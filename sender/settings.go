package sender

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Settings adjust how the deliveries of one subscription are posted. Zero fields
// mean what the dispatcher does for all.
//
// The values of headers and the certificate are secrets of the subscription's
// owner: printing or logging Settings shows the headers' names alone. A Registry seals
// both before they are stored, so that nobody reads them again but the Dispatcher.
// Encoding Settings, as JSON for one, shows what they have: that is how stores keep them.
type Settings struct {
	// Headers are sent with every attempt, besides the library's own. At most 32,
	// of 8 KiB in all. Names are those of RFC 9110, section 5.1, and values have no
	// control characters but tabs. Refused are the names that belong to the
	// connection (Connection, Host, Transfer-Encoding …), to the body
	// (Content-Type …), to the library (User-Agent, all of Webhook-…), and
	// Idempotency-Key, with which an HTTP client may send a request twice.
	//
	// A subscription that is stored has its values sealed, each bound to the
	// subscription and the header: who changes Settings that they have read hands
	// back as they are the values that are to stay.
	Headers map[string]string

	// MaxInFlight bounds the attempts in flight, across all processes: 1 to 1000. What
	// was claimed and waits for its turn counts, too: behind another one about its object,
	// for instance. 0: as many as it earns by answering fast, up to
	// dispatch.Config.PerSubscription in each process.
	MaxInFlight int

	// Rate bounds the attempts a second, across all processes: 0.001 to 10000. 0:
	// not bounded.
	Rate float64

	// Timeout bounds an attempt: from 1 s to RegistryConfig.MaxTimeout. It can only
	// be shorter than the dispatcher's.
	Timeout time.Duration

	// Proxy is the name of one of dispatch.Config.Proxies, to post through.
	Proxy string

	// PayloadVersion is the date that the subscription is pinned to, as 2026-11-25: it gets
	// the data of each type of events in the newest version that was there on it, or else in
	// the oldest. A new subscription is pinned to RegistryConfig.PayloadVersion unless it says
	// another date. One that has none, from before there was a catalogue, gets the oldest
	// versions.
	//
	// It can only rise, and an empty one in a change leaves it as it is: what was posted in a
	// newer version must be posted again in the same bytes. A subscriber that has to go back
	// makes another subscription with the older date. A delivery that was attempted before a
	// change keeps its bytes; those that were not get the new version.
	PayloadVersion string

	// SealedCertificate is the client certificate and its private key, as a
	// Registry sealed them. Empty: none.
	SealedCertificate []byte

	unknown    map[string]json.RawMessage // what is stored, and this release does not know; never changed
	unread     []byte                     // what is stored, if it is unreadable
	unreadable error
}

// String shows the settings without the values of headers and the certificate.
func (s Settings) String() string {
	var b strings.Builder
	b.WriteString("{headers:[")
	b.WriteString(strings.Join(s.headerNames(), " "))
	fmt.Fprintf(&b, "] max_in_flight:%d rate:%v timeout:%v proxy:%q payload_version:%q certificate:%t}",
		s.MaxInFlight, s.Rate, s.Timeout, s.Proxy, s.PayloadVersion, len(s.SealedCertificate) > 0)
	return b.String()
}

// Format writes String, whatever the verb.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue shows what String does.
func (s Settings) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Any("headers", s.headerNames()), slog.Int("max_in_flight", s.MaxInFlight), slog.Float64("rate", s.Rate),
		slog.Duration("timeout", s.Timeout), slog.String("proxy", s.Proxy), slog.String("payload_version", s.PayloadVersion), slog.Bool("certificate", len(s.SealedCertificate) > 0))
}

// headerNames are the names in order. What cannot be a name is left out: somebody
// may have taken the whole header for it.
func (s Settings) headerNames() []string {
	names := make([]string, 0, len(s.Headers))
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if isToken(name) {
			names = append(names, name)
		}
	}
	return names
}

// normalised returns a deep copy of settings that were checked, in the one form
// in which they are stored.
func (s Settings) normalised() Settings {
	headers := s.Headers
	s.Headers = nil
	for name, value := range headers {
		if s.Headers == nil {
			s.Headers = make(map[string]string, len(headers))
		}
		s.Headers[http.CanonicalHeaderKey(name)] = trimmed(value)
	}
	s.SealedCertificate = slices.Clone(s.SealedCertificate)
	if len(s.SealedCertificate) == 0 {
		s.SealedCertificate = nil
	}
	return s
}
