package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// malformedKey is where a request's context has what is wrong with its body.
type malformedKey struct{}

// wellFormed refuses a body that is not one JSON value, and one whose objects have a name
// twice: the next reader may take the other value (RFC 8259, section 4).
func wellFormed(body []byte) *Problem {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil { // also what is nested too deep
		return malformed("body", "it is not one JSON value: "+err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var open []container
	for {
		from := dec.InputOffset()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed("body", err.Error())
		}
		in := len(open) - 1
		isName := in >= 0 && open[in].names != nil && !open[in].value && token != json.Delim('}')
		if _, is := token.(string); is && halfCharacter(body[from:dec.InputOffset()]) {
			of := open
			if isName { // it is in an object, and not in what it is the name of
				of = open[:in]
			}
			return malformed(location(of), "it holds half of a character: a surrogate, from \\ud800 to \\udfff, without the other one of its pair (RFC 8259, section 8.2)")
		}
		if p := beyondReaders(token, open); p != nil {
			return p
		}
		if isName {
			name := token.(string) // what else could be there is not valid
			open[in].name, open[in].value = name, true
			if open[in].names[name] {
				return malformed(location(open), "the object has this name twice")
			}
			open[in].names[name] = true
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, container{names: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, container{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if in := len(open) - 1; in >= 0 { // a value has ended
			open[in].value = false
			open[in].index++
		}
	}
}

// maxDepth is what readers of JSON take that have a limit by default: 512 is PHP's, and 10,000
// is Go's. The pages of GET /events have two levels more than the body of an event had.
const maxDepth = 500

// beyondReaders refuses what is well-formed, and what many that read it later would fail at:
// one such event would end the feed for them.
func beyondReaders(token json.Token, open []container) *Problem {
	switch token := token.(type) {
	case json.Number:
		if _, err := token.Float64(); err != nil {
			return invalid(location(open), "the number is too large: its magnitude may be up to 1.7976931348623157e308 (RFC 8259, section 6)")
		}
	case json.Delim:
		if len(open) == maxDepth && (token == '{' || token == '[') {
			return invalid(location(open[:1]), fmt.Sprintf("it is nested too deep: a body may have %d arrays and objects within each other (RFC 8259, section 9)", maxDepth))
		}
	}
	return nil
}

// halfCharacter tells whether a string's text escapes a surrogate that is not one of a
// pair. It would be stored as another character.
func halfCharacter(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		first := escaped(text[i-1:])
		if !utf16.IsSurrogate(first) {
			continue
		}
		if utf16.DecodeRune(first, escaped(text[min(i+5, len(text)):])) == utf8.RuneError {
			return true
		}
		i += 5 + 5
	}
	return false
}

// escaped is the code unit that a text begins with, as \uXXXX; 0 if it does not.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// container is an object or an array that is being read.
type container struct {
	names map[string]bool // that an object has had; nil: it is an array
	name  string          // of an object: the last of them
	value bool            // of an object: the value is what comes next
	index int             // of an array: how many values it has had
}

func location(open []container) string {
	at := "body"
	for _, c := range open {
		if c.names == nil {
			at += "[" + strconv.Itoa(c.index) + "]"
		} else {
			at += "." + c.name
		}
	}
	return at
}

func malformed(location, message string) *Problem {
	return problem(http.StatusBadRequest, location+": "+message, Detail{Location: location, Message: message})
}

// asJSON is a value as JSON, as the answers write it: <, > and & in raw parts stay as they
// are, where json.Marshal would escape them.
func asJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
