package receiver

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// maxNesting is encoding/json's own limit.
const maxNesting = 10_000

// validJSON reports whether raw is one JSON value (RFC 8259) with white space around it.
// It accepts exactly what encoding/json's Valid accepts, in a fraction of the time. For a
// large event this is the largest cost of receiving, after the hash.
func validJSON(raw []byte) bool {
	i, ok := validValue(raw, space(raw, 0), 0)
	return ok && space(raw, i) == len(raw)
}

// validObject is members for bytes that may be no JSON: it checks while it reads, so that
// the calls of member count only if there is no error. Either way member sees nothing but
// valid names and values.
func validObject(raw []byte, member func(name, value []byte) error) error {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		if validJSON(raw) {
			return errNotObject
		}
		return errNotJSON
	}
	i, ok, err := validMembers(raw, i+1, 1, member)
	if err == nil && !(ok && space(raw, i) == len(raw)) {
		err = errNotJSON
	}
	return err
}

var (
	errNotJSON   = errors.New("the body is not one JSON value")
	errNotObject = errors.New("it is not a JSON object")
)

// The functions below return the offset behind what they have accepted.

func validValue(raw []byte, i, depth int) (int, bool) {
	if i >= len(raw) {
		return i, false
	}
	switch raw[i] {
	case '"':
		return validString(raw, i)
	case '{':
		end, ok, _ := validMembers(raw, i+1, depth+1, nil)
		return end, ok
	case '[':
		return validElements(raw, i+1, depth+1)
	case 't':
		return validWord(raw, i, "true")
	case 'f':
		return validWord(raw, i, "false")
	case 'n':
		return validWord(raw, i, "null")
	default:
		return validNumber(raw, i)
	}
}

// validMembers calls member, unless it is nil, for each member with the name's and the
// value's text, and ends with its error.
func validMembers(raw []byte, i, depth int, member func(name, value []byte) error) (end int, ok bool, err error) {
	if depth > maxNesting {
		return i, false, nil
	}
	i = space(raw, i)
	if i < len(raw) && raw[i] == '}' {
		return i + 1, true, nil
	}
	for i < len(raw) && raw[i] == '"' {
		begin := i
		if i, ok = validString(raw, i); !ok {
			return i, false, nil
		}
		name := raw[begin:i]
		if i = space(raw, i); i >= len(raw) || raw[i] != ':' {
			return i, false, nil
		}
		begin = space(raw, i+1)
		if i, ok = validValue(raw, begin, depth); !ok {
			return i, false, nil
		}
		if member != nil {
			if err = member(name, raw[begin:i]); err != nil {
				return i, false, err
			}
		}
		if i = space(raw, i); i >= len(raw) {
			return i, false, nil
		}
		switch raw[i] {
		case '}':
			return i + 1, true, nil
		case ',':
			i = space(raw, i+1)
		default:
			return i, false, nil
		}
	}
	return i, false, nil
}

func validElements(raw []byte, i, depth int) (int, bool) {
	if depth > maxNesting {
		return i, false
	}
	i = space(raw, i)
	if i < len(raw) && raw[i] == ']' {
		return i + 1, true
	}
	for {
		var ok bool
		if i, ok = validValue(raw, i, depth); !ok {
			return i, false
		}
		if i = space(raw, i); i >= len(raw) {
			return i, false
		}
		switch raw[i] {
		case ']':
			return i + 1, true
		case ',':
			i = space(raw, i+1)
		default:
			return i, false
		}
	}
}

func validString(raw []byte, i int) (int, bool) {
	for i = plain(raw, i+1); i < len(raw); i = plain(raw, i) {
		switch raw[i] {
		case '"':
			return i + 1, true
		case '\\':
			if i+1 >= len(raw) {
				return i, false
			}
			switch raw[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if i+6 > len(raw) {
					return i, false
				}
				for _, c := range raw[i+2 : i+6] {
					if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
						return i, false
					}
				}
				i += 6
			default:
				return i, false
			}
		default: // a control character
			return i, false
		}
	}
	return i, false
}

// plain returns the offset of the first quotation mark, backslash or control
// character from i on, or the end. It looks at sixteen bytes at a time.
func plain(raw []byte, i int) int {
	for ; i+16 <= len(raw); i += 16 {
		if special(binary.LittleEndian.Uint64(raw[i:]))|special(binary.LittleEndian.Uint64(raw[i+8:])) != 0 {
			break
		}
	}
	for ; i+8 <= len(raw); i += 8 {
		if found := special(binary.LittleEndian.Uint64(raw[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(raw) && raw[i] != '"' && raw[i] != '\\' && raw[i] >= 0x20 {
		i++
	}
	return i
}

// special is 0 if no byte of x is below 0x20, a quotation mark or a backslash. Otherwise
// it has the high bit of the first such byte set, in memory's order. Bits that are set
// behind the first mean nothing: the subtractions borrow from there.
func special(x uint64) uint64 {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	quote, slash := x^('"'*ones), x^('\\'*ones)
	return ((x-0x20*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & high
}

func validWord(raw []byte, i int, word string) (int, bool) {
	if len(raw)-i < len(word) || string(raw[i:i+len(word)]) != word {
		return i, false
	}
	return i + len(word), true
}

func validNumber(raw []byte, i int) (int, bool) {
	if i < len(raw) && raw[i] == '-' {
		i++
	}
	begin := i
	if i = digits(raw, i); i == begin || raw[begin] == '0' && i > begin+1 {
		return i, false
	}
	if i < len(raw) && raw[i] == '.' {
		begin = i + 1
		if i = digits(raw, begin); i == begin {
			return i, false
		}
	}
	if i < len(raw) && raw[i]|0x20 == 'e' {
		if i++; i < len(raw) && (raw[i] == '+' || raw[i] == '-') {
			i++
		}
		begin = i
		if i = digits(raw, begin); i == begin {
			return i, false
		}
	}
	return i, true
}

func digits(raw []byte, i int) int {
	for i < len(raw) && raw[i] >= '0' && raw[i] <= '9' {
		i++
	}
	return i
}
