package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/surehook/surehook/signing"
)

// base makes the text that is signed (RFC 9421 section 2.5). Without a message it only checks
// the headers, and makes the same complaints.
func (s *Scheme) base(h http.Header, m *signing.Message, l *layout, st *state) error {
	b := st.content[:0]
	var unanswerable error
	var here target
	for i := range l.components {
		c := &l.components[i]
		if c.kind > keyField && m == nil {
			continue
		}
		b = append(append(b, c.id...), ": "...)
		var err error
		if c.kind > keyField {
			if b, err = s.appendDerived(b, c, m, &here); err != nil && unanswerable == nil {
				unanswerable = err
			}
		} else if b, err = s.appendField(b, c, h, st); err != nil {
			return err
		}
		b = append(b, '\n')
	}
	b = append(append(b, `"@signature-params": `...), st.in.params...)
	st.content = b
	return unanswerable
}

// appendDerived appends what the request line says.
func (s *Scheme) appendDerived(b []byte, c *component, m *signing.Message, here *target) ([]byte, error) {
	if c.kind == method {
		if !isToken(m.Method) {
			return b, fmt.Errorf("httpsig: %w: the method is signed, and signing.Message.Method has none", signing.ErrSignatureMismatch)
		}
		return append(b, m.Method...), nil
	}
	if here.scheme == "" {
		if !s.fixed && len(m.URL) > maxHeader {
			return b, fmt.Errorf("httpsig: %w: the target has %d bytes: at most %d are read", signing.ErrSignatureMismatch, len(m.URL), maxHeader)
		}
		var ok bool
		switch *here, ok = s.targetOf(m); {
		case !s.hasTarget:
			return b, fmt.Errorf("httpsig: %w: %s of the target is signed, and what a request says of it a proxy may have changed: %s", signing.ErrSignatureMismatch, c.id, giveURL)
		case !ok:
			return b, fmt.Errorf("httpsig: %w: %s of the target is signed, and Config.URL ends behind the host: set signing.Message.URL to the target of the request, or have Config.URL end with the path", signing.ErrSignatureMismatch, c.id)
		}
	}
	switch c.kind {
	case targetURI:
		return append(b, here.whole...), nil
	case authority:
		return append(b, here.authority...), nil
	case scheme:
		return append(b, here.scheme...), nil
	case requestTarget:
		return append(b, here.reference...), nil
	case path:
		return append(b, here.path()...), nil
	case query:
		return append(append(b, '?'), here.query()...), nil
	}
	value, ok := here.param(c.param)
	if !ok {
		return b, fmt.Errorf("httpsig: %w: a parameter of the query is signed, and not there once", signing.ErrSignatureMismatch)
	}
	return append(b, value...), nil
}

const giveURL = "set Config.URL to the URL to which the sender sends, such as https://example.com/webhooks"

func (s *Scheme) targetOf(m *signing.Message) (target, bool) {
	switch {
	case !s.hasTarget:
		return target{}, false
	case s.fixed:
		return s.target, true
	}
	return s.target.at(m.URL)
}

func isToken(text string) bool {
	for i := 0; i < len(text); i++ {
		if !tokenByte(text[i]) {
			return false
		}
	}
	return text != ""
}

// appendField appends the value of a header. A header that is there twice is refused, although
// RFC 9421 would join its lines: others who read the request take one of them.
func (s *Scheme) appendField(b []byte, c *component, h http.Header, st *state) ([]byte, error) {
	text, err := s.field(h, c.field)
	if err != nil {
		return b, err
	}
	switch {
	case c.field == contentDigest && c.kind == plainField:
		if st.digests.read(text, &st.seen); st.digests.malformed != "" {
			return b, malformed(contentDigest, st.digests.malformed)
		}
	case c.field == s.cfg.IDHeader && c.kind == plainField && c.field != "":
		if st.id = text; len(text) == 0 || len(text) > maxID {
			return b, malformed(c.field, fmt.Sprintf("is malformed: an id has 1 to %d visible ASCII characters and spaces", maxID))
		}
	}
	switch c.kind {
	case bytesField:
		return append(base64.StdEncoding.AppendEncode(append(b, ':'), []byte(text)), ':'), nil
	case keyField:
		value, found, ok := member(text, c.param)
		if !ok || !found {
			return b, malformed(c.field, "is no dictionary as it is serialised with the key that is signed")
		}
		return append(b, value...), nil
	}
	return append(b, text...), nil
}

const maxID = 256

// field returns the value of a header, which has visible ASCII characters, spaces and tabs
// alone: a line end would begin another line of the signed text. net/http takes the header
// Host out of a request, so it comes from Config.URL.
func (s *Scheme) field(h http.Header, name string) (string, error) {
	text, err := once(h, name, signing.ErrMissingHeader)
	if name == "Host" && s.hasTarget && errors.Is(err, signing.ErrMissingHeader) {
		return s.target.host, nil
	}
	if name == "Host" && errors.Is(err, signing.ErrMissingHeader) {
		return "", fmt.Errorf("%w: the host is signed, and net/http takes it out of the headers, where a proxy may have changed it: %s", err, giveURL)
	}
	if err != nil {
		return "", err
	}
	var wrong byte
	for i := 0; i < len(text); i++ {
		wrong |= notInField[text[i]]
	}
	if wrong != 0 || text != "" && (text[0] <= ' ' || text[len(text)-1] <= ' ') {
		return "", malformed(name, "is malformed: where it is signed it has visible ASCII characters, and spaces and tabs between them")
	}
	return text, nil
}

// notInField is 1 for each byte that the value of a header cannot have here. A look into a
// table is faster than a branch for each kind of byte.
var notInField = func() (table [256]byte) {
	for c := range table {
		if (c < ' ' || c > '~') && c != '\t' {
			table[c] = 1
		}
	}
	return table
}()
