package signing

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// headerNames are the three headers of a scheme.
type headerNames struct{ id, timestamp, signature string }

// check reports names that cannot be header names (RFC 9110 section 5.1), or that
// are not three different ones.
func (n headerNames) check() error {
	var problems []error
	for _, name := range [...]string{n.id, n.timestamp, n.signature} {
		if strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
			problems = append(problems, fmt.Errorf("signing: %q cannot be the name of a header", name))
		}
	}
	if strings.EqualFold(n.id, n.timestamp) || strings.EqualFold(n.id, n.signature) || strings.EqualFold(n.timestamp, n.signature) {
		problems = append(problems, fmt.Errorf("signing: the headers %q, %q and %q must have three different names", n.id, n.timestamp, n.signature))
	}
	return errors.Join(problems...)
}

func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// headerValue is a header's first value, and how many there are.
type headerValue struct {
	text  string
	count int
}

type headerValues struct{ id, timestamp, signature headerValue }

// find looks at every key, because a header that does not come from net/http may
// have its name in any case, and even in two.
func (n headerNames) find(h http.Header) (v headerValues) {
	for name, values := range h {
		v.id.take(name, n.id, values)
		v.timestamp.take(name, n.timestamp, values)
		v.signature.take(name, n.signature, values)
	}
	return v
}

func (v *headerValue) take(name, want string, values []string) {
	if len(name) != len(want) || len(values) == 0 || name != want && !strings.EqualFold(name, want) {
		return
	}
	v.text = values[0]
	v.count += len(values)
}

func (v headerValue) once(name string) error {
	switch v.count {
	case 0:
		return &HeaderError{Header: name, Problem: "is missing", kind: ErrMissingHeader}
	case 1:
		return nil
	}
	return &HeaderError{
		Header:  name,
		Problem: fmt.Sprintf("is there %d times: it must be there once", v.count),
		kind:    ErrRepeatedHeader,
	}
}

// signatureOnce is once for the signature's header, whose absence has an error of
// its own.
func (v headerValue) signatureOnce(name string) error {
	if v.count == 0 {
		return &HeaderError{Header: name, Problem: "is missing: the request carries no signature of this scheme", kind: ErrNotSigned}
	}
	return v.once(name)
}

// timestampIn returns the header's seconds, if they are well-formed and in the window.
func (v headerValue) timestampIn(name string, now time.Time, tolerance time.Duration) (int64, error) {
	if err := v.once(name); err != nil {
		return 0, err
	}
	unix, ok := parseTimestamp(v.text)
	if !ok {
		return 0, malformed(name, "is malformed: it must be the seconds since 1970 in 1 to 11 digits, without a sign or a leading zero")
	}
	return unix, checkWindow(unix, now, tolerance)
}

// checkID refuses a full stop along with the rest: with it, "id.timestamp.body"
// could be split in two ways.
func checkID(name, id string) error {
	if ident.EventID(id) != nil {
		return malformed(name, fmt.Sprintf("is malformed: an event's id has 1 to %d letters, digits, hyphens and underscores", ident.MaxEventID))
	}
	return nil
}

// set replaces the three headers, in whatever spelling they are there.
func (n headerNames) set(h http.Header, id, timestamp, signature string) {
	for name := range h {
		if strings.EqualFold(name, n.id) || strings.EqualFold(name, n.timestamp) || strings.EqualFold(name, n.signature) {
			delete(h, name)
		}
	}
	values := []string{id, timestamp, signature} // one allocation for all
	h[http.CanonicalHeaderKey(n.id)] = values[0:1:1]
	h[http.CanonicalHeaderKey(n.timestamp)] = values[1:2:2]
	h[http.CanonicalHeaderKey(n.signature)] = values[2:3:3]
}

// beforeSigning checks what every scheme's Sign is given.
func (n headerNames) beforeSigning(h http.Header, id string, at time.Time) error {
	if h == nil {
		return errors.New("signing: the header to sign is nil: make one with http.Header{}")
	}
	if err := checkID(n.id, id); err != nil {
		return err
	}
	if unix := at.Unix(); unix < 1 || unix > maxTimestamp {
		return malformed(n.timestamp, fmt.Sprintf("would be malformed: the time to sign at must be from 1 to %d seconds since 1970", int64(maxTimestamp)))
	}
	return nil
}
