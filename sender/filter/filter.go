package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Bounds of an expression.
const (
	MaxBytes = 8 << 10 // of its JSON, as it is written and in its shortest form
	MaxDepth = 8       // of "and", "or" and "not" within each other
	MaxTerms = 64      // operators with their values, wherever they stand; of "in", the whole list is one
	MaxNames = 16      // of a path
)

// Filter is an expression that was parsed. It is safe for concurrent use, and never changes.
// A nil Filter matches every event.
type Filter struct {
	text       string
	root       *clause
	paths      step
	unreadable error
}

// clause is a part of an expression.
type clause struct {
	kind  kind
	parts []*clause // of and, or; of not: one

	path       path
	conditions []condition // of values
	bit        uint64      // in scan.held; the bit of a clause that is absent is that it exists
}

type kind byte

const (
	all    kind = iota // "and"
	some               // "or"
	none               // "not"
	values             // one value at the path meets all conditions
	exists             // there is something at the path
	absent             // there is nothing
)

// Read returns a filter as it was stored, by its String: nil if the text is empty. If it
// cannot be read, since another release or a hand has written it, the filter matches nothing,
// and Unreadable says why: what must not be delivered is not.
func Read(stored string) *Filter {
	if stored == "" {
		return nil
	}
	f, err := Parse([]byte(stored))
	if err != nil {
		return &Filter{text: stored, unreadable: fmt.Errorf("filter: the stored expression cannot be read by this release: %w", err)}
	}
	return f
}

// Unreadable says why a stored filter cannot be read, or is nil.
func (f *Filter) Unreadable() error {
	if f == nil {
		return nil
	}
	return f.unreadable
}

// Match tells whether an event with this body matches. It reads the body once, and resolves
// only what stands at the filter's paths. A body that was redacted, and so is empty, matches
// no filter but nil. Bytes that are no JSON match or do not; nothing else comes of them.
func (f *Filter) Match(body []byte) bool {
	if f == nil {
		return true
	}
	if f.unreadable != nil || len(body) == 0 {
		return false
	}
	s := scan{body: body}
	s.value(&f.paths)
	return f.root.holds(s.held)
}

func (c *clause) holds(held uint64) bool {
	switch c.kind {
	case all:
		for _, p := range c.parts {
			if !p.holds(held) {
				return false
			}
		}
		return true
	case some:
		for _, p := range c.parts {
			if p.holds(held) {
				return true
			}
		}
		return false
	case none:
		return !c.parts[0].holds(held)
	case absent:
		return held&c.bit == 0
	}
	return held&c.bit != 0
}

// String returns the expression in its shortest form, which Parse takes; "" for nil.
// Members stand in the order in which they were written. For an unreadable filter it
// returns the text that is stored.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	return f.text
}

// Equal tells whether both have the same String.
func (f *Filter) Equal(other *Filter) bool { return f.String() == other.String() }

// MarshalJSON returns String, and null for nil. An unreadable text that is no JSON becomes a
// JSON string.
func (f *Filter) MarshalJSON() ([]byte, error) {
	switch {
	case f == nil:
		return []byte("null"), nil
	case f.unreadable != nil && !json.Valid([]byte(f.text)):
		return json.Marshal(f.text)
	}
	return []byte(f.text), nil
}

// members appends a clause as the members of an object.
func (c *clause) members(b *bytes.Buffer) {
	switch c.kind {
	case all:
		if !c.distinct() {
			writeList(b, "and", c.parts)
			return
		}
		for i, p := range c.parts {
			if i > 0 {
				b.WriteByte(',')
			}
			p.members(b)
		}
	case some:
		writeList(b, "or", c.parts)
	case none:
		b.WriteString(`"not":`)
		c.parts[0].object(b)
	case values:
		writeString(b, c.path.String())
		b.WriteByte(':')
		writeConditions(b, c.conditions)
	case exists:
		writeString(b, c.path.String())
		b.WriteString(`:{"exists":true}`)
	case absent:
		writeString(b, c.path.String())
		b.WriteString(`:{"exists":false}`)
	}
}

func (c *clause) object(b *bytes.Buffer) {
	b.WriteByte('{')
	c.members(b)
	b.WriteByte('}')
}

// distinct tells whether the parts can be members of one object.
func (c *clause) distinct() bool {
	seen := map[string]bool{}
	for _, p := range c.parts {
		name := p.name()
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// name is the name of the member that a clause is written as.
func (c *clause) name() string {
	switch c.kind {
	case all:
		return "and"
	case some:
		return "or"
	case none:
		return "not"
	}
	return c.path.String()
}

func writeList(b *bytes.Buffer, name string, parts []*clause) {
	b.WriteString(`"` + name + `":[`)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		p.object(b)
	}
	b.WriteByte(']')
}

func writeConditions(b *bytes.Buffer, conditions []condition) {
	if len(conditions) == 1 && conditions[0].op == eq {
		b.WriteString(conditions[0].literals[0].json)
		return
	}
	b.WriteByte('{')
	for i := range conditions {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, conditions[i].op.String())
		b.WriteByte(':')
		conditions[i].value(b)
	}
	b.WriteByte('}')
}

func writeString(b *bytes.Buffer, text string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	b.Truncate(b.Len() - 1)
}

// quoted is a text as a JSON string.
func quoted(text string) string {
	var b bytes.Buffer
	writeString(&b, text)
	return b.String()
}
