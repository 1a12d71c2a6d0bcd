package catchup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// cursorBehind reads a page that is too large to be kept, and returns its cursor. The
// page must have exactly one event: if the sender ignores the limit, no further event may
// be passed over with it. Next to nothing of the page is kept, however large it is.
func cursorBehind(page io.Reader) (next string, err error) {
	in := json.NewDecoder(&shortened{in: bufio.NewReader(page)})
	in.UseNumber() // what is no float64 is a number, too
	if err := open(in, '{'); err != nil {
		return "", err
	}
	events := 0
	seen := map[string]bool{}
	for in.More() {
		t, err := in.Token()
		if err != nil {
			return "", err
		}
		name, _ := t.(string)
		field := fieldOf(name)
		switch {
		case field == "":
			err = skip(in)
		case field != name || seen[field]: // another reader may take another one
			err = fmt.Errorf("it has %s twice, or in another case", field)
		case field == "data":
			events, err = count(in)
		default:
			if t, err = in.Token(); err == nil {
				next, _ = t.(string)
			}
		}
		seen[field] = true
		if err != nil {
			return "", err
		}
	}
	if _, err := in.Token(); err != nil { // the end of the object
		return "", err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return "", errors.Join(errors.New("something follows it"), err)
	}
	if events != 1 {
		return "", fmt.Errorf("it has %d events, though one was asked for", events)
	}
	return next, CheckCursor(next)
}

// fieldOf returns the field to which encoding/json matches a name, or "".
func fieldOf(name string) string {
	for _, field := range []string{"data", "next_cursor"} {
		if strings.EqualFold(name, field) {
			return field
		}
	}
	return ""
}

func open(in *json.Decoder, bracket json.Delim) error {
	t, err := in.Token()
	if err == nil && t != bracket {
		err = fmt.Errorf("it has no %v where one must be", bracket)
	}
	return err
}

// count passes over a list and returns how many values it has.
func count(in *json.Decoder) (n int, err error) {
	if err := open(in, '['); err != nil {
		return 0, err
	}
	for ; in.More(); n++ {
		if err := skip(in); err != nil {
			return 0, err
		}
	}
	_, err = in.Token()
	return n, err
}

const deepest = 10_000 // encoding/json's own limit, which Token does not have

func skip(in *json.Decoder) error {
	for depth := 0; ; {
		t, err := in.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > deepest {
				return errors.New("it is nested too deeply")
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// longestToken is how much of a string, a number or white space is handed on, an escape
// counting once: a longer string stays too long for a cursor.
const longestToken = maxCursor + 1

// shortened hands on JSON with its tokens cut off, so that a decoder, which keeps each
// token whole, keeps little. The parts that are cut off are not checked.
type shortened struct {
	in     *bufio.Reader
	text   bool // inside a string
	escape int  // how many bytes of an escape may still come
	length int  // of the token
	space  bool
}

func (s *shortened) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c, err := s.in.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil // the error comes again
			}
			return 0, err
		}
		if s.keeps(c) {
			p[n] = c
			n++
		}
	}
	return n, nil
}

func (s *shortened) keeps(c byte) bool {
	if s.text {
		return s.keepsOfText(c)
	}
	was := s.space
	s.space = c == ' ' || c == '\n' || c == '\t' || c == '\r'
	switch {
	case s.space:
		s.length = 0
		return !was
	case strings.IndexByte(`{}[],:"`, c) >= 0:
		s.text, s.length = c == '"', 0
		return true
	default:
		s.length++
		return s.length <= longestToken
	}
}

// keepsOfText never cuts an escape in two.
func (s *shortened) keepsOfText(c byte) bool {
	switch {
	case s.escape > 0:
		if s.escape--; s.escape == 4 && c != 'u' {
			s.escape = 0
		}
		return s.length <= longestToken
	case c == '"':
		s.text = false
		return true
	case c == '\\':
		s.escape = 5
	}
	s.length++
	return s.length <= longestToken
}
