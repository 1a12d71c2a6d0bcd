package sender

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a subscription's settings.
const (
	maxHeaders     = 32
	maxHeaderBytes = 8 << 10 // names and values
	maxMaxInFlight = 1000
	minRate        = 0.001
	maxRate        = 10_000
	minTimeout     = time.Second
	maxHoldTries   = 100
	minHoldFor     = time.Second
	maxHoldFor     = 30 * 24 * time.Hour
)

// DefaultTimeout is how long an attempt may take if its Settings do not say, and
// MaxTimeout the longest that they, and a configuration, may say.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 30 * time.Second
)

// settingsLimits are what a registry's configuration says of settings.
type settingsLimits struct {
	timeout        time.Duration
	proxies        []string
	payloadVersion string // the newest; "": there is no catalogue
	facts          []string
	policies       PolicyBounds
}

// check reports everything that is wrong with the settings, except a policy of their own.
// Its errors quote no value of a header, and no name that cannot be one.
func (s Settings) check(limits settingsLimits) error {
	var errs []error
	bad := func(wrong bool, field, format string, args ...any) {
		if wrong {
			errs = append(errs, refuseField(field, "settings: ", format, args...))
		}
	}
	bad(len(s.Headers) > maxHeaders, "headers", "there are %d headers: at most %d are allowed", len(s.Headers), maxHeaders)
	total := 0
	seen := make(map[string]bool, len(s.Headers))
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		given := s.Headers[name]
		value := trimmed(given)
		total += len(name) + valueBytes(value)
		if !isToken(name) {
			bad(true, "headers", "a header has a name that cannot be one: RFC 9110 allows letters, digits and !#$%%&'*+-.^_`|~")
			continue
		}
		name = http.CanonicalHeaderKey(name)
		bad(seen[name], "headers", "the header %q is given twice: names differ by more than their case", name)
		seen[name] = true
		bad(refusedHeader(name), "headers", "the header %q is not yours to set", name)
		if isSealed(given) {
			continue // it was checked before, and whose it is, a registry says
		}
		if err := checkHeaderValue(value); err != nil {
			bad(true, "headers", "the header %q: %v", name, err)
		}
	}
	bad(total > maxHeaderBytes, "headers", "the headers have %d bytes: at most %d are allowed", total, maxHeaderBytes)
	bad(s.MaxInFlight < 0 || s.MaxInFlight > maxMaxInFlight, "max_in_flight", "max in flight is %d: it must be from 1 to %d, or 0", s.MaxInFlight, maxMaxInFlight)
	bad(s.Rate != 0 && !(s.Rate >= minRate && s.Rate <= maxRate), "rate", "the rate is %v: it must be from %v to %v a second, or 0", s.Rate, minRate, maxRate)
	bad(s.Timeout != 0 && (s.Timeout < minTimeout || s.Timeout > limits.timeout), "timeout", "the timeout is %v: it must be from %v to %v, or 0", s.Timeout, minTimeout, limits.timeout)
	if err := checkPayloadVersion(s.PayloadVersion); err != nil && s.PayloadVersion != "" {
		bad(true, "payload_version", "the %v", err)
	}
	if s.Proxy != "" && !slices.Contains(limits.proxies, s.Proxy) {
		errs = append(errs, limits.refuseProxy())
	}
	bad(s.Gone != GoneFails && s.Gone != GoneStops, "gone", "gone is %q: it must be %q, or empty for a failure like any other", s.Gone, GoneStops)
	return errors.Join(append(errs, s.checkOrder()...)...)
}

// besides leaves out the timeout and the proxy that a subscription has already.
func (s Settings) besides(has *Settings) Settings {
	if s.Timeout == has.Timeout {
		s.Timeout = 0
	}
	if s.Proxy == has.Proxy {
		s.Proxy = ""
	}
	return s
}

func (s Settings) checkOrder() (errs []error) {
	bad := func(wrong bool, field, format string, args ...any) {
		if wrong {
			errs = append(errs, refuseField(field, "settings: ", format, args...))
		}
	}
	bad(s.Order != OrderRelaxed && s.Order != OrderObject && s.Order != OrderLatest, "order",
		"the order is %q: it must be %q or %q, or empty for the relaxed one", s.Order, OrderObject, OrderLatest)
	bad(s.HoldTries < 0 || s.HoldTries > maxHoldTries, "hold_tries", "hold tries is %d: it must be from 1 to %d, or 0", s.HoldTries, maxHoldTries)
	bad(s.HoldFor != 0 && (s.HoldFor < minHoldFor || s.HoldFor > maxHoldFor), "hold_for", "hold for is %v: it must be from %v to %v, or 0", s.HoldFor, minHoldFor, maxHoldFor)
	holds := s.HoldTries != 0 || s.HoldFor != 0 || s.HoldDead
	bad(holds && s.Order != OrderObject, "order", "hold tries, hold for and hold dead are for the order %q alone: set it, or leave them out", OrderObject)
	return errs
}

// checkFacts refuses event types of which each event counts, if older ones may end undelivered.
func (l settingsLimits) checkFacts(types []string, order Order) error {
	if order != OrderLatest {
		return nil
	}
	for _, asked := range types {
		for _, fact := range l.facts {
			if TypeMatches(asked, fact) {
				has := ""
				if asked != fact {
					has = fmt.Sprintf("; %q has it", asked)
				}
				return refuseField("order", "settings: ", "in the order %q a newer event replaces older ones, and each event of the type %q counts: choose another order, or event types without this one%s", OrderLatest, fact, has)
			}
		}
	}
	return nil
}

// refuseProxy keeps the name of the configuration's field to the whole text.
func (l settingsLimits) refuseProxy() error {
	e := &FieldError{Field: "proxy", Reason: "the proxy is not one that may be used here: ", before: "subscription: settings: "}
	if len(l.proxies) == 0 {
		e.Reason, e.after = e.Reason+"there are none", " (RegistryConfig.Proxies)"
		return e
	}
	e.Reason += "these are " + strings.Join(l.proxies, ", ")
	return e
}

// refused are the headers that subscriptions may not set, as refusedHeader
// compares them: those of the connection (RFC 9110, section 7.6.1), those that say
// how the body is to be read, the library's own, and those with which net/http
// changes what it does: it sends a request again that has an idempotency key.
var refused = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"host": true, "content-length": true, "content-type": true, "content-encoding": true, "expect": true,
	"user-agent": true, "date": true, "accept-encoding": true,
	"idempotency-key": true, "x-idempotency-key": true,
}

// refusedHeader takes an underscore for a hyphen, as servers do that hand headers
// on as variables (RFC 3875, section 4.1.18).
func refusedHeader(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return refused[name] || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "webhook-")
}

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// trimmed is without the space around a value, which is no part of it.
func trimmed(value string) string { return strings.Trim(value, " \t") }

func checkHeaderValue(value string) error {
	if !utf8.ValidString(value) {
		return errors.New("its value must be valid UTF-8")
	}
	if i := strings.IndexFunc(value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }); i >= 0 {
		return fmt.Errorf("its value has a control character at offset %d: only tabs are allowed", i)
	}
	return nil
}

// pinned is the payload version of settings that replace others, which have the version was;
// a new subscription's replace none.
func (l settingsLimits) pinned(asked, was string, isNew bool) (string, error) {
	switch {
	case asked == "" && isNew:
		return l.payloadVersion, nil
	case asked == "" || asked == was:
		return was, nil
	case asked < was:
		return "", refuseField("payload_version", "settings: ", "the payload version is %q: it can only rise from %q, since what was sent is sent again in the same bytes; make another subscription with the older version", asked, was)
	case l.payloadVersion == "":
		return "", refuseField("payload_version", "settings: ", "the payload version is %q: there are none here", asked)
	case asked > l.payloadVersion:
		return "", refuseField("payload_version", "settings: ", "the payload version is %q: the newest is %q", asked, l.payloadVersion)
	}
	return asked, nil
}
