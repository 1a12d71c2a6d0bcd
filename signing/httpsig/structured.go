package httpsig

import (
	"encoding/base64"
	"strings"
)

// scanner reads structured fields (RFC 9651), each in the one form in which a serialiser
// writes it (section 4.1). A value that a lenient reader would take in another form is
// refused: what is signed is the serialised form, and two readers must not differ about it.
type scanner struct {
	text string
	at   int
}

const maxKey = 64

// bytes that may begin a key, and that may stand in it (RFC 9651 section 3.1.2).
func keyStart(c byte) bool { return c >= 'a' && c <= 'z' || c == '*' }

func keyByte(c byte) bool {
	return keyStart(c) || digit(c) || c == '_' || c == '-' || c == '.'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) done() bool { return s.at == len(s.text) }

// peek returns 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) key() (string, bool) {
	start := s.at
	if !keyStart(s.peek()) {
		return "", false
	}
	for s.at < len(s.text) && keyByte(s.text[s.at]) {
		s.at++
	}
	return s.text[start:s.at], s.at-start <= maxKey
}

// next goes to the next member of a list. ok is false if what stands here is neither the end
// nor a comma with another member behind it.
func (s *scanner) next() (more, ok bool) {
	if s.done() {
		return false, true
	}
	s.space()
	if !s.take(',') {
		return false, false
	}
	s.space()
	return true, !s.done()
}

// space skips what may stand around commas. Proxies that join the lines of a header write it
// as they like, and it is no part of a member.
func (s *scanner) space() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
}

// str reads a string and returns what stands between its quotes, escapes and all.
func (s *scanner) str() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start : s.at-1], true
		case c == '\\':
			if s.at++; s.peek() != '"' && s.peek() != '\\' {
				return "", false
			}
		case c < ' ' || c > '~':
			return "", false
		}
		s.at++
	}
	return "", false
}

// plain undoes the escapes of a string.
func plain(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' {
			i++
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

// quoted is the string with that text, which has printable ASCII characters alone.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// integer reads one of at most 15 digits.
func (s *scanner) integer() (n int64, ok bool) {
	negative := s.take('-')
	start := s.at
	for s.at < len(s.text) && digit(s.text[s.at]) && s.at-start <= 15 {
		n = n*10 + int64(s.text[s.at]-'0')
		s.at++
	}
	digits := s.at - start
	if digits == 0 || digits > 15 || s.text[start] == '0' && (digits > 1 || negative) {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// number reads an integer or a decimal.
func (s *scanner) number() bool {
	start := s.at
	zero := strings.HasPrefix(s.text[s.at:], "-0.") // the one number with a sign before a zero
	if zero {
		s.at += 2
	} else if _, ok := s.integer(); !ok {
		return false
	}
	if s.peek() != '.' {
		return true
	}
	whole := s.at - start
	if s.text[start] == '-' {
		whole--
	}
	s.at++
	from := s.at
	for digit(s.peek()) {
		s.at++
	}
	n := s.at - from
	return n >= 1 && n <= 3 && whole <= 12 && (n == 1 || s.text[s.at-1] != '0')
}

// bytes reads a byte sequence and returns its base64.
func (s *scanner) bytes() (string, bool) {
	if !s.take(':') {
		return "", false
	}
	n := strings.IndexByte(s.text[s.at:], ':')
	if n < 0 || n%4 != 0 {
		return "", false
	}
	text := s.text[s.at : s.at+n]
	s.at += n + 1
	return text, true
}

var strictBase64 = base64.StdEncoding.Strict()

// decode appends what strict base64 stands for to dst, or only checks it if dst is nil. It goes
// piece by piece, so that it allocates nothing if dst has the room. Each piece must give as many
// bytes as its length says: so there is no padding within, and none of the line ends that the
// decoder skips.
func decode(dst []byte, text string) ([]byte, bool) {
	var raw [64]byte
	var room [48]byte
	for len(text) > 0 {
		n := copy(raw[:], text)
		text = text[n:]
		want := n / 4 * 3
		for i := n - 1; len(text) == 0 && i >= n-2 && i >= 0 && raw[i] == '='; i-- {
			want--
		}
		got, err := strictBase64.Decode(room[:], raw[:n])
		if err != nil || got != want || n%4 != 0 {
			return dst, false
		}
		if dst != nil {
			dst = append(dst, room[:got]...)
		}
	}
	return dst, true
}

func (s *scanner) token() bool {
	if c := s.peek(); !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '*') {
		return false
	}
	for c := s.peek(); tokenByte(c) || c == ':' || c == '/'; c = s.peek() {
		s.at++
	}
	return true
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// bareItem reads any item without its parameters.
func (s *scanner) bareItem() bool {
	switch c := s.peek(); {
	case c == '"':
		_, ok := s.str()
		return ok
	case c == '-' || digit(c):
		return s.number()
	case c == ':':
		text, ok := s.bytes()
		if !ok {
			return false
		}
		_, ok = decode(nil, text)
		return ok
	case c == '?':
		s.at++
		return s.take('0') || s.take('1')
	case c == '@':
		s.at++
		_, ok := s.integer()
		return ok
	case c == '%':
		return s.displayString()
	}
	return s.token()
}

// displayString is UTF-8 with escapes in lowercase hex (RFC 9651 section 3.3.8). Whether the
// escapes are UTF-8 matters to nothing here: nothing reads one.
func (s *scanner) displayString() bool {
	if s.at++; !s.take('"') {
		return false
	}
	for !s.done() {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < ' ' || c > '~':
			return false
		case c == '%':
			for range 2 {
				if h := s.peek(); !digit(h) && (h < 'a' || h > 'f') {
					return false
				}
				s.at++
			}
		}
	}
	return false
}

// maxParameters bounds those of one item.
const maxParameters = 16

// parameters skips those of an item.
func (s *scanner) parameters() bool {
	for n := 0; s.take(';'); n++ {
		if _, ok := s.key(); !ok || n == maxParameters {
			return false
		}
		if s.take('=') && (strings.HasPrefix(s.text[s.at:], "?1") || !s.bareItem()) {
			return false
		}
	}
	return true
}

// maxItems bounds an inner list, and the components of a signature.
const maxItems = 32

// innerList skips one, without the parameters behind it.
func (s *scanner) innerList() bool {
	if !s.take('(') {
		return false
	}
	for n := 0; !s.take(')'); n++ {
		if n == maxItems || n > 0 && !s.take(' ') || !s.bareItem() || !s.parameters() {
			return false
		}
	}
	return true
}

// maxMembers bounds a dictionary.
const maxMembers = 16

// keys are those of a dictionary, to find one that is there twice.
type keys struct {
	names [maxMembers]string
	n     int
}

// add returns false for a key that is there already, and for one too many.
func (k *keys) add(name string) bool {
	for i := range k.names[:k.n] {
		if k.names[i] == name {
			return false
		}
	}
	if k.n == maxMembers {
		return false
	}
	k.names[k.n] = name
	k.n++
	return true
}

// member returns the value of a dictionary's member as it is serialised, with its parameters.
// It is false for what is no dictionary, or has a key twice. found tells whether the member is
// there.
func member(text, key string) (value string, found, ok bool) {
	s := scanner{text: text}
	var seen keys
	for {
		name, good := s.key()
		if !good || !seen.add(name) {
			return "", false, false
		}
		start, bare := s.at, true
		if s.take('=') {
			start, bare = s.at, false
			if strings.HasPrefix(s.text[s.at:], "?1") || s.peek() != '(' && !s.bareItem() || s.peek() == '(' && !s.innerList() {
				return "", false, false
			}
		}
		if !s.parameters() {
			return "", false, false
		}
		if name == key {
			value, found = s.text[start:s.at], true
			if bare {
				value = "?1" + value
			}
		}
		if more, good := s.next(); !good {
			return "", false, false
		} else if !more {
			return value, found, true
		}
	}
}
