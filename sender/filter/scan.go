package filter

import (
	"bytes"
	"encoding/json"
)

// scan reads a body once. It goes into the objects and arrays that lie on the filter's paths,
// and passes over all others.
type scan struct {
	body []byte
	at   int
	held uint64 // the clauses of which a value was found that they hold of

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
			if depth > 0 {
				continue
			}
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
	case s.body[s.at] == '{' && len(at.next) > 0:
		s.object(at)
	case s.body[s.at] == '{':
		s.pass()
	case len(at.tests) == 0 && s.saw == nil:
		s.pass()
	default:
		s.scalar(at)
	}
	if s.saw != nil {
		s.saw(at, s.body[from:s.at])
	}
}

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
		if next := at.named(name); next != nil {
			s.value(next)
		} else if s.space() != 0 {
			s.pass()
		}
	}
}

// named returns the step that a member leads to, whose name is given as it is in JSON; nil if
// no path has it.
func (s *step) named(name []byte) *step {
	if bytes.IndexByte(name, '\\') >= 0 {
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
		if bytes.IndexByte(v.text, '\\') >= 0 {
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

// pass goes past a value, whatever it is. It moves by one byte at least.
func (s *scan) pass() {
	depth := 0
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case '"':
			s.text()
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			depth--
			s.at++
		default:
			if depth > 0 {
				s.at++
				continue
			}
			s.word()
		}
		if depth <= 0 {
			return
		}
	}
}

// text goes past a string and returns what is between the quotation marks, as it is in JSON.
func (s *scan) text() []byte {
	from := s.at + 1
	for i := from; ; i++ {
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
