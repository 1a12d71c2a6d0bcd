package look

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"
)

// MaxShown bounds the part of a body that is shown, in bytes.
const MaxShown = 64 << 10

// Shown is the part of some bytes that a page shows.
type Shown struct {
	HTML template.HTML
	Size string // of the whole, in bytes; "": it is shown whole
}

// deepest is how deep objects and arrays may be for their JSON to be indented. Each level adds
// blanks to every line within it: a few KiB of brackets would be hundreds of MiB.
const deepest = 32

// Show indents and colours bytes if they are JSON, at most MaxShown and not very deep. Others
// it shows as they are, up to that.
func Show(b []byte) Shown {
	var indented bytes.Buffer
	if len(b) > MaxShown || deep(b) || json.Indent(&indented, b, "", "  ") != nil {
		return posted(b)
	}
	return Shown{HTML: colour(indented.String())}
}

// posted shows bytes as they are, at most MaxShown.
func posted(b []byte) (s Shown) {
	if len(b) > MaxShown {
		s.Size = Count(len(b))
	}
	s.HTML = template.HTML(template.HTMLEscapeString(text(b))) //nolint:gosec // escaped
	return s
}

// copyBody is a button that copies a body. There is none for one that is shown in part.
func copyBody(b []byte) template.HTML {
	if len(b) > MaxShown {
		return ""
	}
	return copyButton(string(b), "Copy the body")
}

// deep tells whether JSON has more levels than deepest.
func deep(b []byte) bool {
	level, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if level++; level > deepest {
				return true
			}
		case c == '}' || c == ']':
			level--
		}
	}
	return false
}

// text is the part of some bytes that a page shows, as they are.
func text(b []byte) string {
	if len(b) > MaxShown {
		b = b[:MaxShown]
	}
	return Plain(string(b))
}

// colour puts each token of valid JSON into an element that says what it is.
func colour(s string) template.HTML {
	var out strings.Builder
	token := func(class, text string) {
		out.WriteString(`<span class="` + class + `">` + Escape(text) + `</span>`)
	}
	for len(s) > 0 {
		end := 1
		switch c := s[0]; {
		case c == ' ' || c == '\n':
			out.WriteByte(c)
		case c == '"':
			end = stringEnd(s)
			if strings.HasPrefix(s[end:], ":") {
				token("j-k", s[:end])
			} else {
				token("j-s", s[:end])
			}
		case strings.IndexByte("{}[],:", c) >= 0:
			token("j-p", s[:1])
		default: // a number, true, false or null
			if end = strings.IndexAny(s, " \n,]}"); end < 0 {
				end = len(s)
			}
			token("j-n", s[:end])
		}
		s = s[end:]
	}
	return template.HTML(out.String()) //nolint:gosec // each token is escaped
}

// stringEnd is where the string ends that begins here.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
