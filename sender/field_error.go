package sender

import (
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/guard"
)

// FieldError says what is wrong with one field of a subscription, of a callback, or of a
// subscriber, that was asked for. It matches ErrInvalid. If several are wrong, errors.As finds
// the first, and FieldErrors finds all.
type FieldError struct {
	// Field is id, url, event_types, filter, description, headers, max_in_flight, rate,
	// timeout, proxy, payload_version, order, hold_tries, hold_for, retry_delays, horizon,
	// disable_after, gone or client_certificate.
	Field string
	// Reason says what is wrong and what would be right. It can be shown, as it is, to
	// whoever has filled in the form: it names nothing of the configuration, and quotes no
	// secret. Error is for operators and logs: it has the reason, what was asked for, and
	// what in the configuration would allow it.
	Reason string

	before, after string // of the reason, in the whole text
}

// Error returns the whole text.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%v %s%s%s", ErrInvalid, e.before, e.Reason, e.after)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// FieldErrors returns all that err wraps, in their order.
func FieldErrors(err error) (all []*FieldError) {
	if one, ok := err.(*FieldError); ok { //nolint:errorlint // this is the way through the tree
		return []*FieldError{one}
	}
	switch wrapping := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		return FieldErrors(wrapping.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range wrapping.Unwrap() {
			all = append(all, FieldErrors(each)...)
		}
	}
	return all
}

// refuseField makes the error of a subscription's field. The whole text names the field by
// the words in front of the reason.
func refuseField(field, words, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...), before: "subscription: " + words}
}

// refuseURL makes the error of the URL of a subscription or a callback. Where the network's
// policy alone is in the way of development, the whole text says what would allow it.
func refuseURL(of string, network guard.Policy, url string, err error) error {
	e := &FieldError{Field: "url", Reason: err.Error(), before: of + ": url: "}
	var refused *guard.Error
	if errors.As(err, &refused) {
		e.Reason, e.before = refused.Problem+": "+refused.Remedy, e.before+"guard: "
	}
	if network.AllowPrivateNetworks {
		return e
	}
	network.AllowPrivateNetworks = true
	if _, err := network.CheckURL(url); err == nil {
		e.after = "; for development, and for subscribers inside, set Network.AllowPrivateNetworks, which allows private addresses and http"
	}
	return e
}
