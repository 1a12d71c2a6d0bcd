package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// scan reads a body once. It goes into the objects and arrays that lie on the filter's paths,
// and passes over all others.
type scan struct {
	body []byte
	at   int
	held uint64 // the clauses that hold of a value that was found

	escaped bool // the last string has a backslash

	saw func(at *step, json []byte) // of Explain: what stands at a path
}

// value reads a value that stands at a step. It goes into arrays by counting how deep it is,
// and into objects only as deep as the paths go, so that no body can exhaust the stack.
func (s *scan) value(at *step) {
	s.held |= at.exists
	for depth := 0; ; {
		from := s.at
		switch s.space() {
		case 0:
			return
		case '[':
			s.at++
			depth++
			if s.saw != nil && s.space() == ']' {
				s.saw(at, []byte("[]"))
			}
		case ']':
			s.at++
			depth--
		case ',':
			s.at++
		default:
			s.one(at)
			if s.at == from { // no JSON
				return
			}
		}
		if depth <= 0 {
			return
		}
	}
}

// one reads a value that is no array.
func (s *scan) one(at *step) {
	from := s.at
	switch {
	case s.decided(at):
		s.pass(0)
	case s.body[s.at] == '{' && len(at.next) > 0:
		s.object(at)
	case s.body[s.at] == '{':
		s.pass(0)
	case len(at.tests) == 0 && s.saw == nil:
		s.pass(0)
	default:
		s.scalar(at)
	}
	if s.saw != nil {
		s.saw(at, s.body[from:s.at])
	}
}

// decided tells whether all clauses at a step and below it hold already.
func (s *scan) decided(at *step) bool { return s.held&at.clauses == at.clauses && s.saw == nil }

func (s *scan) object(at *step) {
	s.at++
	for {
		switch s.space() {
		case ',':
			s.at++
			continue
		case '"':
		case '}':
			s.at++
			return
		default:
			s.at = len(s.body) // no JSON
			return
		}
		name := s.text()
		if s.space() == ':' {
			s.at++
		}
		if next := at.named(name, s.escaped); next != nil {
			s.value(next)
			if s.decided(at) {
				s.pass(1)
				return
			}
		} else if s.space() != 0 {
			s.pass(0)
		}
	}
}

// named returns the step that a member leads to, whose name is given as it is in JSON; nil if
// no path has it.
func (s *step) named(name []byte, escaped bool) *step {
	if escaped {
		name = resolved(name)
	}
	for _, n := range s.next {
		if n.name == string(name) {
			return n
		}
	}
	return nil
}

// scalar tests a string, a number, true, false or null.
func (s *scan) scalar(at *step) {
	var v scalar
	switch s.body[s.at] {
	case '"':
		v.shape, v.text = isString, s.text()
		if s.escaped {
			v.text = resolved(v.text)
		}
	case 't':
		v.shape = isTrue
		s.word()
	case 'f':
		v.shape = isFalse
		s.word()
	case 'n':
		v.shape = isNull
		s.word()
	default:
		v.shape, v.number = isNumber, parseNumber(s.word())
	}
	for _, t := range at.tests {
		if s.held&t.bit == 0 && t.meets(&v) {
			s.held |= t.bit
		}
	}
}

// meets tells whether a value meets all conditions of a clause.
func (c *clause) meets(v *scalar) bool {
	for i := range c.conditions {
		if !c.conditions[i].holds(v) {
			return false
		}
	}
	return true
}

// pass goes past a value of any kind if depth is 0. Otherwise the value is in that many
// objects and arrays, and pass goes to the end of the outermost. It moves by one byte at
// least.
func (s *scan) pass(depth int) {
	if depth == 0 && !marks[s.body[s.at]] {
		s.word()
		return
	}
	body, i := s.body, s.at
	for i < len(body) {
		c := body[i]
		if !marks[c] {
			i++
			continue
		}
		switch c {
		case '"':
			s.at = i
			s.text()
			i = s.at
		case '{', '[':
			depth++
			i++
			continue
		default:
			depth--
			i++
		}
		if depth <= 0 {
			s.at = i
			return
		}
	}
	s.at = i
}

// marks are the bytes that matter in what is passed over.
var marks = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// shortText bounds the strings that are read here: to call a search costs more.
const shortText = 32

// text goes past a string and returns what is between the quotation marks, as it is in JSON.
func (s *scan) text() []byte {
	from := s.at + 1
	s.escaped = false
	i := from
	for near := min(from+shortText, len(s.body)-7); i < near; i += 8 {
		m := endOrEscape(binary.LittleEndian.Uint64(s.body[i:]))
		if m == 0 {
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		if s.body[i] == '"' {
			s.at = i + 1
			return s.body[from:i]
		}
		break
	}
	return s.longText(from, i)
}

// endOrEscape has the highest bit of the first byte that is a quotation mark or a backslash,
// and no lower bit; 0 if there is none. It is "Determine if a word has a byte equal to n" of
// https://graphics.stanford.edu/~seander/bithacks.html: bits above the first one say nothing.
func endOrEscape(eight uint64) uint64 {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	quote, backslash := eight^ones*'"', eight^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash) & highest
}

// longText is text for a string that does not end before a byte, which no backslash escapes.
func (s *scan) longText(from, i int) []byte {
	for ; ; i++ {
		n := bytes.IndexByte(s.body[i:], '"')
		if n < 0 {
			s.at = len(s.body)
			return s.body[from:]
		}
		i += n
		before := i
		for before > from && s.body[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 {
			s.at = i + 1
			s.escaped = bytes.IndexByte(s.body[from:i], '\\') >= 0
			return s.body[from:i]
		}
	}
}

// word goes past a number, true, false or null, and returns it.
func (s *scan) word() []byte {
	from := s.at
	for s.at++; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case ',', ']', '}', ' ', '\t', '\n', '\r', ':', '"':
			return s.body[from:s.at]
		}
	}
	return s.body[from:s.at]
}

// space goes to what follows, and returns its first byte, or 0 at the end.
func (s *scan) space() byte {
	if s.at < len(s.body) {
		if c := s.body[s.at]; c > ' ' {
			return c
		}
	}
	return s.spaces()
}

func (s *scan) spaces() byte {
	for ; s.at < len(s.body); s.at++ {
		switch c := s.body[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// resolved returns a string without its escapes, just as encoding/json reads it.
func resolved(text []byte) []byte {
	quoted := make([]byte, 0, len(text)+2)
	quoted = append(append(append(quoted, '"'), text...), '"')
	var plain string
	if json.Unmarshal(quoted, &plain) != nil {
		return nil // no JSON
	}
	return []byte(plain)
}
