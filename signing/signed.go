package signing

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// part is a piece of the text that is signed.
type part struct {
	kind    partKind
	literal string  // also a header's or a field's name
	form    *idForm // what a header or a field may have here
	value   int     // its place in stated.values, if its kind is read from the body
}

type partKind uint8

const (
	partLiteral partKind = iota
	partTimestamp
	partID
	partHeaders
	partHeader
	partField
	partLower
	partForm
	partDigest
)

// These never last. {url}, {path} and {method} are literals once the scheme is made, and
// {body} is what stands between head and tail.
const (
	partURL partKind = 0xf0 + iota
	partPath
	partMethod
	partBody
)

var partNames = map[string]partKind{
	"timestamp": partTimestamp, "id": partID, "headers": partHeaders, "url": partURL, "path": partPath, "method": partMethod, "body": partBody,
	"header": partHeader, "field": partField, "lower": partLower, "form": partForm, "digest": partDigest,
}

const knownParts = "it may have {body}, {digest:HASH:ENCODING}, {timestamp}, {id}, {url}, {path}, {method}, {headers}, {header:NAME}, {field:PATH}, {lower:PATH} and {form:NAME}"

// template is the text that is signed, taken apart.
type template struct {
	head, tail []part // before and behind {body}; without {body} all is in head
	body       bool
}

func (t *template) has(kind partKind) bool {
	return hasPart(t.head, kind) || hasPart(t.tail, kind)
}

// covers reports whether the text has the whole body, or its digest.
func (t *template) covers() bool { return t.body || t.has(partDigest) }

// names reports whether the text has the header or the field of that name.
func (t *template) names(kind partKind, name string) bool {
	named := func(p part) bool { return p.kind == kind && p.literal == name }
	return slices.ContainsFunc(t.head, named) || slices.ContainsFunc(t.tail, named)
}

const maxParts = 32

// parseSigned takes a template apart.
func parseSigned(text string) (t template, err error) {
	seen := map[string]bool{}
	for rest, n := text, 0; rest != ""; n++ {
		if n == maxParts {
			return t, fmt.Errorf("it has more than %d parts", maxParts)
		}
		var p part
		if rest[0] != '{' {
			i := strings.IndexByte(rest, '{')
			if i < 0 {
				i = len(rest)
			}
			p.literal, rest = rest[:i], rest[i:]
		} else {
			name, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return t, fmt.Errorf("{%s is not known: %s", name, knownParts)
			}
			if seen[name] {
				return t, fmt.Errorf("it has {%s} twice", name)
			}
			seen[name] = true
			if p, err = parsePart(name); err != nil {
				return t, err
			}
			rest = after
		}
		switch {
		case p.kind == partBody:
			t.body = true
		case t.body:
			t.tail = append(t.tail, p)
		default:
			t.head = append(t.head, p)
		}
	}
	return t, t.check()
}

func parsePart(text string) (p part, err error) {
	name, of, more := strings.Cut(text, ":")
	kind, known := partNames[name]
	p.kind = kind
	switch takesName := kind == partHeader || kind == partField || kind == partLower || kind == partForm || kind == partDigest; {
	case !known || more && !takesName:
		return p, fmt.Errorf("{%s} is not known: %s", text, knownParts)
	case takesName && of == "":
		return p, fmt.Errorf("{%s} names nothing: it is like {header:X-Request-Id}, {field:data.id}, {form:token} or {digest:sha256:hex}", text)
	case kind == partHeader:
		if strings.ContainsFunc(of, func(r rune) bool { return !isTokenRune(r) }) {
			return p, fmt.Errorf("{%s}: %q cannot be the name of a header", text, of)
		}
		p.literal = http.CanonicalHeaderKey(of)
	case (kind == partField || kind == partLower) && slices.Contains(strings.Split(of, "."), ""):
		return p, fmt.Errorf("{%s}: a field is a path of names with full stops between them, such as {field:data.id}", text)
	case kind == partDigest && digests[of] == nil:
		return p, fmt.Errorf("{%s} is not known: it may be {digest:sha256:hex}, {digest:sha256:base64}, {digest:sha512:hex} or {digest:sha512:base64}", text)
	default:
		p.literal = of
	}
	return p, nil
}

// check refuses a text that could be split into its parts in two ways. Before the body,
// each value is read up to what stands behind it; behind the body, from the end, up to what
// stands before it.
func (t *template) check() error {
	if !t.body && !t.has(partDigest) && !t.has(partField) && !t.has(partLower) && !t.has(partForm) {
		return errors.New(`it must have {body}, as "{timestamp}.{body}" has, or the body's {digest:…}, or a {field:…} or {form:…} of it`)
	}
	if hasPart(t.tail, partHeaders) {
		return errors.New("{headers} must stand before {body}: behind it, nobody could tell where the body ends")
	}
	if t.has(partHeaders) && (t.has(partHeader) || t.has(partField) || t.has(partLower) || t.has(partForm)) {
		return errors.New("{headers} cannot stand beside {header:…}, {field:…} or {form:…}: nobody could tell where each of them ends")
	}
	for i := range t.head {
		p := &t.head[i]
		if !p.valued() {
			if p.kind == partID && i+1 < len(t.head) && t.head[i+1].valued() {
				return fmt.Errorf("{id} needs a text between it and {%s}: otherwise the signed text could be split in two ways", t.head[i+1].name())
			}
			continue
		}
		switch {
		case i+1 < len(t.head) && t.head[i+1].kind == partLiteral:
			p.form = valuesWithout(t.head[i+1].literal[0])
		case i+1 == len(t.head) && !t.body:
			p.form = anyValues
		default:
			return fmt.Errorf("{%s} needs a text behind it that its value cannot have, such as a full stop: otherwise the signed text could be split in two ways", p.name())
		}
	}
	for i := range t.tail {
		p := &t.tail[i]
		if !p.valued() && p.kind != partID {
			continue
		}
		if i == 0 || t.tail[i-1].kind != partLiteral {
			return fmt.Errorf("{%s} behind {body} needs a text before it that its value cannot have, such as a full stop: otherwise the signed text could be split in two ways", p.name())
		}
		before := t.tail[i-1].literal
		p.form = valuesWithout(before[len(before)-1])
		if p.kind == partID {
			p.form = foreignIDs(before[len(before)-1])
		}
	}
	return nil
}

// valued parts have a text of the sender's, of any form.
func (p *part) valued() bool {
	return p.kind == partHeader || p.kind == partField || p.kind == partLower || p.kind == partForm
}

func (p *part) name() string {
	switch p.kind {
	case partHeader:
		return "header:" + p.literal
	case partField:
		return "field:" + p.literal
	case partLower:
		return "lower:" + p.literal
	case partForm:
		return "form:" + p.literal
	}
	return "id"
}

func hasPart(parts []part, kind partKind) bool {
	for i := range parts {
		if parts[i].kind == kind {
			return true
		}
	}
	return false
}

// idsIn returns which ids cannot shift into what stands beside them in the signed text. If
// the byte behind the id is one that no id of the narrow form has, an id may have every
// other. Otherwise nothing but the narrow form keeps the id apart from the rest, and where
// headers of any text come first, not to let them shift into the id either.
func idsIn(t *template) *idForm {
	for i := range t.tail {
		if t.tail[i].kind == partID {
			return t.tail[i].form
		}
	}
	head := t.head
	for i, p := range head {
		switch {
		case p.kind != partID && p.kind != partHeaders:
			continue
		case i+1 == len(head) || head[i+1].kind != partLiteral || ownIDs.refused[head[i+1].literal[0]] == 0:
			return ownIDs
		case p.kind == partHeaders && head[i+1].literal[0] != '.': // which separates headers
			return ownIDs
		default:
			return foreignIDs(head[i+1].literal[0])
		}
	}
	return ownIDs
}

// fix puts in what no request can change.
func (t *template) fix(callback string) {
	for _, parts := range [...][]part{t.head, t.tail} {
		for i := range parts {
			switch p := &parts[i]; p.kind {
			case partURL:
				*p = part{literal: callback}
			case partPath:
				*p = part{literal: pathOf(callback)}
			case partMethod:
				*p = part{literal: http.MethodPost}
			}
		}
	}
}

// pathOf returns the path and the query, letter by letter.
func pathOf(callback string) string {
	_, rest, _ := strings.Cut(callback, "://")
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// appendHead appends what precedes the body.
func (s *Described) appendHead(dst []byte, r *stated) []byte { return appendParts(dst, s.text.head, r) }

func (s *Described) appendTail(dst []byte, r *stated) []byte { return appendParts(dst, s.text.tail, r) }

func appendParts(dst []byte, parts []part, r *stated) []byte {
	for i := range parts {
		switch p := &parts[i]; p.kind {
		case partLiteral:
			dst = append(dst, p.literal...)
		case partTimestamp:
			dst = append(dst, r.timestamp...)
		case partID:
			dst = append(dst, r.id...)
		case partHeaders:
			dst = append(dst, r.covered...)
			for name := range strings.SplitSeq(r.covered, " ") {
				dst = append(append(dst, '.'), findSpelled(r.header, name).text...)
			}
		case partHeader:
			dst = append(dst, find(r.header, p.literal).text...)
		default:
			dst = append(dst, r.values[p.value]...)
		}
	}
	return dst
}

// bodyParts numbers the parts that are read from the body.
func (t *template) bodyParts() (n int) {
	for _, parts := range [...][]part{t.head, t.tail} {
		for i := range parts {
			if p := &parts[i]; p.kind == partField || p.kind == partLower || p.kind == partForm || p.kind == partDigest {
				p.value = n
				n++
			}
		}
	}
	return n
}

// readBodyParts reads what of the body is a part of the text by itself. It returns false if
// one is not there, or has a form that it cannot have at its place.
func (s *Described) readBodyParts(body []byte, r *stated) bool {
	r.values = make([]string, s.bodyParts)
	var form url.Values
	for _, parts := range [...][]part{s.text.head, s.text.tail} {
		for i := range parts {
			p := &parts[i]
			var value string
			var found bool
			switch p.kind {
			case partField:
				value, found = jsonText(body, p.literal)
			case partLower:
				value, found = jsonText(body, p.literal)
				value = strings.ToLower(value)
			case partForm:
				if form == nil {
					form = formOf(body)
				}
				if found = len(form[p.literal]) == 1; found {
					value = form[p.literal][0]
				}
			case partDigest:
				r.values[p.value] = digests[p.literal](body)
				continue
			default:
				continue
			}
			if !found || !p.form.holds(value) {
				return false
			}
			r.values[p.value] = value
		}
	}
	return true
}

// formOf returns an empty form for a body that is not a form, or that has too many
// parameters.
func formOf(body []byte) url.Values {
	if bytes.Count(body, []byte{'&'}) >= maxFormPairs {
		return url.Values{}
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return url.Values{}
	}
	return form
}
