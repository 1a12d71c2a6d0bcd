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
// The values of headers and the certificate are secrets of the subscription's owner:
// printing or logging Settings shows the headers' names alone. A Registry seals both
// before they are stored, so that nobody reads them again but the Dispatcher. Encoding
// Settings, in JSON for example, shows all that they have: that is how stores keep them.
type Settings struct {
	// Headers are sent with every attempt, besides the library's own. At most 32,
	// of 8 KiB in all. Names are those of RFC 9110, section 5.1, and values have no
	// control characters but tabs. Names that belong to the connection (Connection, Host,
	// Transfer-Encoding …), to the body (Content-Type …) or to the library (User-Agent, all
	// of Webhook-…) are refused, and so is Idempotency-Key, with which an HTTP client may
	// send a request twice.
	//
	// A subscription that is stored has its values sealed, each bound to the
	// subscription and the header: a caller who changes Settings that it has read hands
	// back unchanged the values that are to stay.
	Headers map[string]string

	// MaxInFlight bounds the attempts in flight, across all processes: 1 to 1000. A delivery
	// counts too while it is claimed and waits, for instance behind another one about its
	// object. 0: as many as it earns by answering fast, up to dispatch.Config.PerSubscription
	// in each process.
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
	PayloadVersion string `json:",omitzero"`

	// Order says how the deliveries about one object wait for each other. Events that were
	// expanded before it was set keep the order that they had.
	Order Order `json:",omitzero"`

	// HoldTries and HoldFor bound for how long a delivery that fails holds back the later
	// versions of its object, under OrderObject: up to 100 attempts, and from 1 s to 30 d
	// after the first of them. It is dead-lettered then, or when its schedule ends, which
	// is never later. 0: only when its schedule ends.
	HoldTries int           `json:",omitzero"`
	HoldFor   time.Duration `json:",omitzero"`

	// HoldDead has a dead letter go on to hold back the later versions of its object, under
	// OrderObject, until it is redelivered, passed over (see history.History.PassOver),
	// replayed or removed, or the subscription is deleted. False: the later versions go
	// on. Those that were published longer ago than Retention.Reach by then end as dead
	// letters instead, except for those behind one that is passed over by force, or sent
	// again.
	HoldDead bool `json:",omitzero"`

	// RetryDelays are how long the attempts of a delivery that fails wait for each other,
	// before jitter: the first delay follows the first attempt, and the last is repeated
	// until the horizon. Up to 100, within RegistryConfig.OwnPolicies. A Retry-After
	// lengthens them as it does those of all.
	RetryDelays []time.Duration `json:",omitempty"`

	// Horizon is how long after its first attempt a delivery is tried: from 1 min, within
	// RegistryConfig.OwnPolicies.
	Horizon time.Duration `json:",omitzero"`

	// DisableAfter is for how long the subscription must have been failing to be disabled:
	// from 1 h, within RegistryConfig.OwnPolicies. The shares of it at which its owner is
	// warned, and the number of failures, are those of dispatch.Policy. NeverDisable: it
	// never is, and nobody is warned.
	DisableAfter time.Duration `json:",omitzero"`

	// Gone says what the answer 410 Gone does.
	Gone Gone `json:",omitzero"`

	// SealedCertificate is the client certificate and its private key, as a
	// Registry sealed them. Empty: none.
	SealedCertificate []byte

	unknown    map[string]json.RawMessage // what is stored, and this release does not know; never changed
	unread     []byte                     // what is stored, if it is unreadable
	unreadable error
}

// Order says how the deliveries of a subscription that are about one object wait for each
// other. Deliveries about different objects never do.
type Order string

const (
	// OrderRelaxed: versions are begun in their order while the endpoint takes them. One
	// that failed waits for its retry, and later versions pass it.
	OrderRelaxed Order = ""
	// OrderObject: a version is attempted only when every earlier version of its object has
	// ended for this subscription. One that fails holds back its own object alone, for as
	// long as HoldTries and HoldFor say.
	OrderObject Order = "object"
	// OrderLatest: a newer version ends the earlier ones of its object that are not in
	// flight, as StatusSuperseded. So a backlog grows with the objects, and not with the
	// events. It is for endpoints that need the newest state alone, and not for events of
	// which each counts: see RegistryConfig.Facts.
	OrderLatest Order = "latest"
)

// String shows the settings without the values of headers and the certificate.
func (s Settings) String() string {
	var b strings.Builder
	b.WriteString("{headers:[")
	b.WriteString(strings.Join(s.headerNames(), " "))
	fmt.Fprintf(&b, "] max_in_flight:%d rate:%v timeout:%v proxy:%q certificate:%t",
		s.MaxInFlight, s.Rate, s.Timeout, s.Proxy, len(s.SealedCertificate) > 0)
	if s.PayloadVersion != "" {
		fmt.Fprintf(&b, " payload_version:%q", s.PayloadVersion)
	}
	if s.Order != OrderRelaxed {
		fmt.Fprintf(&b, " order:%q hold_tries:%d hold_for:%v hold_dead:%t", s.Order, s.HoldTries, s.HoldFor, s.HoldDead)
	}
	if s.HasPolicy() {
		fmt.Fprintf(&b, " retry_delays:%v horizon:%v disable_after:", s.RetryDelays, s.Horizon)
		if s.DisableAfter == NeverDisable {
			b.WriteString("never")
		} else {
			b.WriteString(s.DisableAfter.String())
		}
	}
	if s.Gone != GoneFails {
		fmt.Fprintf(&b, " gone:%q", s.Gone)
	}
	return b.String() + "}"
}

// Format writes String, whatever the verb.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue shows what String does.
func (s Settings) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Any("headers", s.headerNames()), slog.Int("max_in_flight", s.MaxInFlight), slog.Float64("rate", s.Rate),
		slog.Duration("timeout", s.Timeout), slog.String("proxy", s.Proxy), slog.String("payload_version", s.PayloadVersion), slog.Bool("certificate", len(s.SealedCertificate) > 0),
		slog.String("order", string(s.Order)), slog.Int("hold_tries", s.HoldTries), slog.Duration("hold_for", s.HoldFor), slog.Bool("hold_dead", s.HoldDead),
		slog.Any("retry_delays", s.RetryDelays), slog.Duration("horizon", s.Horizon), slog.Duration("disable_after", s.DisableAfter), slog.String("gone", string(s.Gone)))
}

// headerNames are the names in order. A text that cannot be a name is left out: somebody
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
	s.RetryDelays = slices.Clone(s.RetryDelays)
	if len(s.RetryDelays) == 0 {
		s.RetryDelays = nil
	}
	return s
}
