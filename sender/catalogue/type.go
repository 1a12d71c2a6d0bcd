package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Kind says what an event is to a receiver.
type Kind string

// The kinds of events.
const (
	State Kind = "state" // its data is its object's whole state: only the newest version counts
	Fact  Kind = "fact"  // each event counts
	Thin  Kind = "thin"  // it has no data: the receiver fetches the object
)

// Type is a type of events.
type Type struct {
	// Name is the type, exactly: invoice.paid.
	Name string `json:"name"`

	// Group is the heading that it stands under. "": it stands under none.
	Group string `json:"group,omitempty"`

	// Description says when it happens, in a sentence or two.
	Description string `json:"description,omitempty"`

	// Object is the type of the objects that it is about: invoice.
	Object string `json:"object"`

	// Kind is State, Fact or Thin.
	Kind Kind `json:"kind"`

	// Deprecated, if not empty, says that it will end, and what to use instead: "Use
	// invoice.paid."
	Deprecated string `json:"deprecated,omitempty"`

	// Versions are those of its data, the oldest first. There is at least one. A Thin type
	// has exactly one, whose examples have no data.
	Versions []Version `json:"versions"`
}

// Version is a version of a type's data.
type Version struct {
	// Since is the date since which it is there, as 2026-11-25. Only the first version of a
	// type may have none: it has been there from the beginning.
	Since string `json:"since,omitempty"`

	// Changes says for customers how it differs from the version before.
	Changes string `json:"changes,omitempty"`

	// Schema describes the data: a JSON Schema. Nil: nothing is said of it.
	Schema json.RawMessage `json:"schema,omitempty"`

	// Examples are data of this version. There is at least one.
	Examples []Example `json:"examples"`

	// Down makes the data of the version before from data of this one: see [Converter]. Only
	// the first version has none. It must be a pure function of the data: no clock, no
	// chance, no database. Many goroutines call it at once, each with a copy of its own. An
	// error puts the delivery off; its text is not logged, since it may quote the data.
	Down func(data json.RawMessage) (json.RawMessage, error) `json:"-"`
}

// Example is an event of a type.
type Example struct {
	// Name tells it from others of the same version. Examples of two versions that have one
	// name are of the same event: New checks Version.Down by them.
	Name string `json:"name,omitempty"`

	// ObjectID is the id of the object that it is about.
	ObjectID string `json:"object_id"`

	// Data is its data, or nil for a Thin type.
	Data json.RawMessage `json:"data,omitempty"`
}

// Converter returns a Version.Down that works on Go values: data is decoded into a New, and
// the Old that f returns is encoded. Fields that New does not have are lost; with
// map[string]json.RawMessage for both, none are.
func Converter[New, Old any](f func(New) (Old, error)) func(json.RawMessage) (json.RawMessage, error) {
	return func(data json.RawMessage) (json.RawMessage, error) {
		var v New
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, err
		}
		old, err := f(v)
		if err != nil {
			return nil, err
		}
		return json.Marshal(old)
	}
}

// Newest returns the newest version.
func (t *Type) Newest() *Version { return &t.Versions[len(t.Versions)-1] }

// At returns the version that a subscription gets which is pinned to a date: the newest one
// that was there on it, or the oldest if none was.
func (t *Type) At(date string) *Version { return &t.Versions[t.at(date)] }

func (t *Type) at(date string) int {
	i := len(t.Versions) - 1
	for i > 0 && t.Versions[i].Since > date {
		i--
	}
	return i
}

// convert makes the data of version to from that of version from, which is not older. A
// converter that panics has failed. If one fails, at is its version. The converter gets a copy:
// one that appends to its data would write into what others still read, such as the body that
// other subscriptions get.
func (t *Type) convert(data json.RawMessage, from, to int) (_ json.RawMessage, at int, err error) {
	at, data = from, bytes.Clone(data)
	defer func() {
		if v := recover(); v != nil {
			err = errPanicked
		}
	}()
	for ; at > to; at-- {
		if data, err = t.Versions[at].Down(data); err != nil {
			return nil, at, err
		}
		if !json.Valid(data) || !utf8.Valid(data) {
			return nil, at, errNoJSON
		}
	}
	return data, at, nil
}

// These are not a converter's own errors, so their texts quote no data.
var (
	errPanicked = errors.New("it panicked")
	errNoJSON   = errors.New("what it returned is no JSON in UTF-8")
)
