package signing

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// headerNames are the three headers of a scheme, in their canonical spelling.
type headerNames struct{ id, timestamp, signature string }

// or returns the names with those that are set instead.
func (n headerNames) or(id, timestamp, signature string) headerNames {
	if id != "" {
		n.id = http.CanonicalHeaderKey(id)
	}
	if timestamp != "" {
		n.timestamp = http.CanonicalHeaderKey(timestamp)
	}
	if signature != "" {
		n.signature = http.CanonicalHeaderKey(signature)
	}
	return n
}

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

// find returns the values under the name's canonical spelling, which is the only one in
// requests that come from net/http. If there are none, every other spelling counts, since
// maps from elsewhere have them.
func find(h http.Header, name string) headerValue {
	if values := h[name]; len(values) > 0 {
		return headerValue{values[0], len(values)}
	}
	return findSpelled(h, name)
}

func findSpelled(h http.Header, name string) (v headerValue) {
	for spelling, values := range h {
		// Equal lengths: no character outside ASCII folds into a name.
		if len(spelling) == len(name) && strings.EqualFold(spelling, name) {
			if v.count += len(values); len(values) > 0 {
				v.text = values[0]
			}
		}
	}
	return v
}

// findAll returns all values of a header. Those of one spelling are in their order.
func findAll(h http.Header, name string) []string {
	if values := h[name]; len(values) > 0 {
		return values
	}
	var all []string
	for spelling, values := range h {
		if spelled(spelling, name) {
			all = append(all, values...)
		}
	}
	return all
}

// OnlyHeader returns the value of a header that must be there exactly once. The canonical
// spelling of its name counts, and any other only if there is none. Its error matches
// absent, such as ErrNotSigned for the signature's own header, or ErrRepeatedHeader. It is
// for a Scheme of your own.
func OnlyHeader(h http.Header, name string, absent error) (string, error) {
	v := find(h, name)
	switch {
	case v.count == 1:
		return v.text, nil
	case errors.Is(absent, ErrNotSigned):
		return "", v.signatureOnce(name)
	}
	return "", notOnce(name, v.count, "is missing", absent)
}

// once reports a header that is not there exactly once.
func (v headerValue) once(name string) error {
	if v.count == 1 {
		return nil
	}
	return notOnce(name, v.count, "is missing", ErrMissingHeader)
}

// signatureOnce is once for the signature's header, whose absence has an error of
// its own.
func (v headerValue) signatureOnce(name string) error {
	if v.count == 1 {
		return nil
	}
	return notOnce(name, v.count, "is missing: the request carries no signature of this scheme", ErrNotSigned)
}

func notOnce(name string, count int, missing string, kind error) error {
	if count == 0 {
		return &HeaderError{Header: name, Problem: missing, kind: kind}
	}
	return &HeaderError{
		Header:  name,
		Problem: fmt.Sprintf("is there %d times: it must be there once", count),
		kind:    ErrRepeatedHeader,
	}
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

// idForm says which ids a header may have. Table lookups make verifying faster than a
// branch for each kind of byte.
type idForm struct {
	limit   int
	refused [256]byte // 1 for each byte that an id cannot have
	says    string
}

func (f *idForm) check(name, id string) error {
	if id != "" && len(id) <= f.limit && f.allows(id) {
		return nil
	}
	return malformed(name, "is malformed: "+f.says)
}

func (f *idForm) allows(id string) bool {
	var refused byte
	for i := 0; i < len(id); i++ {
		refused |= f.refused[id[i]]
	}
	return refused == 0
}

// ownIDs are the ids of this module's own events.
var ownIDs = func() *idForm {
	f := &idForm{
		limit: ident.MaxEventID,
		says:  fmt.Sprintf("an event's id has 1 to %d letters, digits, hyphens and underscores", ident.MaxEventID),
	}
	for c := range f.refused {
		if ident.EventID(string([]byte{byte(c)})) != nil {
			f.refused[c] = 1
		}
	}
	return f
}()

// maxForeignID bounds the ids of other senders. Standard Webhooks sets no bound, and the
// longest ids that known senders use have some 70 bytes.
const maxForeignID = 256

// foreignIDs are the ids of other senders, which may have every visible character but the
// separator: the byte that stands behind the id in the text that is signed. With it in an
// id, that text could be split in two ways.
func foreignIDs(separator byte) *idForm {
	f := &idForm{
		limit: maxForeignID,
		says:  fmt.Sprintf("an id has 1 to %d visible ASCII characters, and none of them is %q, which stands behind the id in the signed text", maxForeignID, separator),
	}
	for c := range f.refused {
		if !visible(rune(c)) || byte(c) == separator {
			f.refused[c] = 1
		}
	}
	return f
}

var dottedIDs = foreignIDs('.')

// maxValue bounds a header or a field that is a part of the signed text.
const maxValue = 1024

// valuesWithout are texts of visible ASCII characters and spaces, without the separator.
func valuesWithout(separator byte) *idForm {
	f := &idForm{
		limit: maxValue,
		says:  fmt.Sprintf("where it is signed it has at most %d visible ASCII characters and spaces, and none of them is %q, which stands beside it in the signed text", maxValue, separator),
	}
	for c := range f.refused {
		if !visible(rune(c)) && c != ' ' || byte(c) == separator {
			f.refused[c] = 1
		}
	}
	return f
}

// anyValues are for the end of a text, where nothing follows.
var anyValues = func() *idForm {
	f := &idForm{limit: maxValue, says: fmt.Sprintf("where it is signed it has at most %d visible ASCII characters and spaces", maxValue)}
	for c := range f.refused {
		if !visible(rune(c)) && c != ' ' {
			f.refused[c] = 1
		}
	}
	return f
}()

// holds is for values, which may be empty.
func (f *idForm) holds(value string) bool { return len(value) <= f.limit && f.allows(value) }

// set replaces the three headers in any spelling of their names.
func (n headerNames) set(h http.Header, id, timestamp, signature string) {
	for name := range h {
		if spelled(name, n.id) || spelled(name, n.timestamp) || spelled(name, n.signature) {
			delete(h, name)
		}
	}
	values := []string{id, timestamp, signature} // one allocation for all
	h[n.id] = values[0:1:1]
	h[n.timestamp] = values[1:2:2]
	h[n.signature] = values[2:3:3]
}

// spelled reports whether text is a spelling of a header's name. The lengths alone, which
// are the same then, tell most names apart.
func spelled(text, name string) bool { return len(text) == len(name) && strings.EqualFold(text, name) }

// beforeSigning checks what every scheme's Sign is given.
func (n headerNames) beforeSigning(h http.Header, ids *idForm, id string, at time.Time) error {
	if h == nil {
		return errors.New("signing: the header to sign is nil: make one with http.Header{}")
	}
	if err := ids.check(n.id, id); err != nil {
		return err
	}
	if unix := at.Unix(); unix < 1 || unix > maxTimestamp {
		return malformed(n.timestamp, fmt.Sprintf("would be malformed: the time to sign at must be from 1 to %d seconds since 1970", int64(maxTimestamp)))
	}
	return nil
}
