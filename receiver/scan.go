package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf16"
)

// members calls member for each member of the JSON object that raw begins with,
// in order, with the name's and the value's text as they stand. encoding/json
// cannot be asked to do this: it takes the last of several equal names, and any
// case of a field's name. raw must be valid JSON.
func members(raw []byte, member func(name, value []byte) error) error {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return errNotObject
	}
	i = space(raw, i+1)
	for i < len(raw) && raw[i] == '"' {
		end := skipString(raw, i)
		name := raw[i:end]
		i = space(raw, end) // at the colon
		i = space(raw, i+1) // at the value
		end = skipValue(raw, i)
		if err := member(name, raw[i:end]); err != nil {
			return err
		}
		i = space(raw, end) // at the comma or the brace
		i = space(raw, i+1)
	}
	return nil
}

// memberAt returns the value at a path of names with full stops between them. The path ""
// stands for raw itself. The value is nil if there is none, or if an object has a name of
// the path twice. raw must be valid JSON.
func memberAt(raw []byte, path string) []byte {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		var found []byte
		times := 0
		_ = members(raw, func(quoted, value []byte) error {
			if n, err := text(quoted); err == nil && n == name {
				times++
				found = value[:len(value):len(value)]
			}
			return nil
		})
		if times != 1 {
			return nil
		}
		raw = found
	}
	return raw
}

// The functions below take and return offsets, and never pass the end of raw.

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return min(i, len(raw))
}

func skipString(raw []byte, i int) int {
	for i = plain(raw, i+1); i < len(raw); i = plain(raw, i) {
		switch raw[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
	return len(raw)
}

func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(raw)
}

// text is the string that a JSON string's text stands for.
func text(raw []byte) (string, error) {
	s, err := unquoted(raw)
	return string(s), err
}

// unquoted is text in place, if there is nothing to be replaced in it: s must not be
// changed.
func unquoted(raw []byte) (s []byte, err error) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, errors.New("it is not a JSON string")
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, nil
	}
	if loneSurrogate(inner) {
		return nil, errors.New(`it has half of a surrogate pair (\ud800 to \udfff)`)
	}
	var t string
	err = json.Unmarshal(raw, &t)
	return []byte(t), err
}

// loneSurrogate finds an escape that encoding/json would silently replace by U+FFFD,
// which would make two different names equal.
func loneSurrogate(s []byte) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		r := hex4(s[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+2 >= len(s) || s[i+1] != '\\' || s[i+2] != 'u' {
			return true
		}
		if utf16.DecodeRune(r, hex4(s[i+3:])) == '\uFFFD' {
			return true
		}
		i += 6
	}
	return false
}

func hex4(s []byte) rune {
	var r rune
	for _, c := range s[:min(4, len(s))] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}
