package signing

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// jsonText returns the string or the plain number at a path of names with full stops
// between them, in a JSON object. A name that an object has twice, in any spelling of its
// characters, is not found: another reader may take the other one.
func jsonText(doc []byte, path string) (text string, found bool) {
	return jsonScalar(jsonAt(doc, path))
}

// jsonAt is jsonText for the value as it is written, or nil.
func jsonAt(doc []byte, path string) (value []byte) {
	if path == "" || !json.Valid(doc) {
		return nil
	}
	return jsonIn(doc, path)
}

// jsonIn is jsonAt for a part of a document that is known to be valid JSON. To find that out
// takes much longer than to look for a name.
func jsonIn(value []byte, path string) []byte {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		if value = jsonMember(value, name); value == nil {
			return nil
		}
	}
	return value
}

// jsonMember returns the value of the only member of that name, or nil. doc must be
// valid JSON.
func jsonMember(doc []byte, name string) []byte {
	value, count := jsonMembers(doc, name)
	if count != 1 {
		return nil
	}
	return value
}

// jsonMembers returns the last value of that name, and how many there are.
func jsonMembers(doc []byte, name string) (value []byte, count int) {
	i := jsonSpace(doc, 0)
	if i == len(doc) || doc[i] != '{' {
		return nil, 0
	}
	for i = jsonSpace(doc, i+1); i < len(doc) && doc[i] == '"'; {
		end := jsonString(doc, i)
		same := jsonNamed(doc[i:end], name)
		i = jsonSpace(doc, jsonSpace(doc, end)+1) // behind the colon
		end = jsonValue(doc, i)
		if same {
			value, count = doc[i:end], count+1
		}
		i = jsonSpace(doc, jsonSpace(doc, end)+1) // behind the comma
	}
	return value, count
}

// jsonElements yields the elements of a list, which must be valid JSON. Anything else has none.
func jsonElements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(list) == 0 || list[0] != '[' {
			return
		}
		for i := jsonSpace(list, 1); i < len(list) && list[i] != ']'; {
			end := jsonValue(list, i)
			if !yield(list[i:end]) {
				return
			}
			i = jsonSpace(list, jsonSpace(list, end)+1) // behind the comma
		}
	}
}

func jsonNamed(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == name
}

// jsonScalar accepts a string or a number in plain digits, and refuses nil and all other values.
// The text is a copy: nobody can change it with the body's bytes.
func jsonScalar(value []byte) (string, bool) {
	if value == nil {
		return "", false
	}
	switch c := value[0]; {
	case c == '"':
		inner := value[1 : len(value)-1]
		if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
			return string(inner), true
		}
		var s string
		if json.Unmarshal(value, &s) != nil || strings.ContainsRune(s, utf8.RuneError) {
			return "", false
		}
		return s, true
	case c >= '0' && c <= '9' && !bytes.ContainsAny(value, ".eE"):
		return string(value), true
	}
	return "", false
}

// The functions below take and return offsets, and never pass the end of doc.

func jsonSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return min(i, len(doc))
}

func jsonString(doc []byte, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

func jsonValue(doc []byte, i int) int {
	for depth := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = jsonString(doc, i) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the end of what the value is in
			}
			depth--
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(doc)
}
