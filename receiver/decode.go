package receiver

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
)

// decode reads an event from a body of the form
//
//	{"id":"evt_1","type":"subscriber.updated","occurred_at":"2026-01-02T03:04:05Z",
//	 "object":{"type":"subscriber","id":"sub_1"},"version":7,"payload_version":"2026-11-25","data":{…}}
//
// so strictly that no other reader of the same bytes can understand another
// event: no name twice, none of the known names in another case, the version in
// plain digits, valid UTF-8, nothing behind the object. occurred_at, payload_version and data
// may be absent, and further fields are allowed. Its errors contain nothing of the
// body but single bytes.
func decode(body []byte) (Event, error) {
	ev := Event{Body: body}
	if !utf8.Valid(body) {
		return ev, errors.New("the body is not valid UTF-8")
	}
	top := newFields("id", "type", "occurred_at", "object", "version", "payload_version", "data")
	err := validObject(body, func(name, value []byte) error {
		known, err := top.add(name)
		if err != nil {
			return err
		}
		switch known {
		case "id":
			ev.ID, err = checked(value, ident.EventID)
		case "type":
			ev.Type, err = checked(value, ident.Type)
		case "object":
			ev.Object.Type, ev.Object.ID, err = decodeObject(value)
		case "version":
			ev.Version, err = decodeVersion(value)
		case "occurred_at":
			var at []byte
			if at, err = unquoted(value); err == nil {
				if err = ev.OccurredAt.UnmarshalText(at); err != nil {
					err = errors.New("it is not a time as in RFC 3339")
				}
			}
		case "payload_version":
			ev.PayloadVersion, err = text(value)
		case "data":
			ev.Data = value[:len(value):len(value)]
		}
		if err != nil {
			return fmt.Errorf("%s: %w", known, err)
		}
		return nil
	})
	if err != nil {
		return ev, err
	}
	return ev, top.require("id", "type", "object", "version")
}

func decodeObject(raw []byte) (objectType, id string, err error) {
	all := newFields("type", "id")
	err = members(raw, func(name, value []byte) error {
		known, err := all.add(name)
		if err != nil {
			return err
		}
		switch known {
		case "type":
			objectType, err = checked(value, ident.ObjectType)
		case "id":
			id, err = checked(value, ident.ObjectID)
		}
		return err
	})
	if err != nil {
		return "", "", err
	}
	return objectType, id, all.require("type", "id")
}

func checked(raw []byte, form func(string) error) (string, error) {
	s, err := text(raw)
	if err != nil {
		return "", err
	}
	return s, form(s)
}

// decodeVersion takes plain digits alone: 7.0, 7e0 and "7" are the same number to
// some readers and not to others.
func decodeVersion(raw []byte) (int64, error) {
	if len(raw) == 0 || len(raw) > 16 || raw[0] == '0' {
		return 0, errVersion
	}
	var v int64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, errVersion
		}
		v = v*10 + int64(c-'0')
	}
	return v, ident.Version(v)
}

var errVersion = fmt.Errorf("it must be an integer from 1 to %d in plain digits", int64(ident.MaxVersion))

// fields notes which names an object has had.
type fields struct {
	known []string
	seen  uint
	other map[string]struct{}
}

func newFields(known ...string) fields { return fields{known: known} }

// add returns the name if it is a known one, and "" otherwise.
func (f *fields) add(raw []byte) (string, error) {
	// Nearly all names are known ones without escapes: no allocation for them.
	for i, k := range f.known {
		if len(raw) == len(k)+2 && string(raw[1:len(raw)-1]) == k {
			return k, f.once(i)
		}
	}
	name, err := text(raw)
	if err != nil {
		return "", fmt.Errorf("a field's name: %w", err)
	}
	for i, k := range f.known {
		if name == k {
			return k, f.once(i)
		}
		if strings.EqualFold(name, k) {
			return "", fmt.Errorf("a field is named like %s in another case: it must be written exactly so", k)
		}
	}
	if _, twice := f.other[name]; twice {
		return "", errors.New("a field appears twice")
	}
	if f.other == nil {
		f.other = make(map[string]struct{})
	}
	f.other[name] = struct{}{}
	return "", nil
}

func (f *fields) once(i int) error {
	if f.seen&(1<<i) != 0 {
		return fmt.Errorf("the field %s appears twice", f.known[i])
	}
	f.seen |= 1 << i
	return nil
}

func (f *fields) require(names ...string) error {
	var missing []string
	for _, name := range names {
		for i, k := range f.known {
			if k == name && f.seen&(1<<i) == 0 {
				missing = append(missing, name)
			}
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("missing: %s", strings.Join(missing, ", "))
}
