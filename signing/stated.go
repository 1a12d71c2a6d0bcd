package signing

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// stated has the statements of a request's headers, before anything is verified.
type stated struct {
	header    http.Header
	timestamp string
	unix      int64
	id        string // if the signature covers it
	covered   string // names of headers
	list      string // the signature's header, if it has labels; the signature, if it is ECDSA's
	first     digest // the first signature that decodes
	n         int    // how many do
	values    []string
}

// read makes all checks of the headers.
func (s *Described) read(h http.Header, now time.Time, tolerance time.Duration, r *stated) error {
	if s.d.Name == "" { // a zero Described
		return ErrNoValidKey
	}
	r.header = h
	if err := s.readSignatures(h, r); err != nil {
		return err
	}
	if s.inHeaders {
		if err := s.readHeaders(h); err != nil {
			return err
		}
	}
	if s.text.has(partID) {
		id := find(h, s.id)
		if err := id.once(s.id); err != nil {
			return err
		}
		if err := s.ids.check(s.id, id.text); err != nil {
			return err
		}
		r.id = id.text
	}
	from := s.signature
	switch {
	case s.d.TimestampHeader != "":
		timestamp := find(h, s.timestamp)
		if err := timestamp.once(s.timestamp); err != nil {
			return err
		}
		from, r.timestamp = s.timestamp, timestamp.text
	case s.d.TimestampLabel == "":
		return nil
	}
	var ok bool
	if r.unix, ok = s.d.TimestampFormat.parse(r.timestamp); !ok {
		return malformed(from, "is malformed: its time must be "+s.d.TimestampFormat.form())
	}
	return checkWindow(r.unix, now, s.tolerance(tolerance))
}

// readSignatures reads the one header with the signature, or all those that may have one.
func (s *Described) readSignatures(h http.Header, r *stated) error {
	if s.signature == "" { // it is in the body
		return nil
	}
	if s.more == nil && !s.d.SignatureRepeats {
		signature := find(h, s.signature)
		if err := signature.signatureOnce(s.signature); err != nil {
			return err
		}
		return s.readSignature(s.signature, signature.text, r)
	}
	n := 0
	for i := -1; i < len(s.more); i++ {
		name := s.signatureName(i)
		for _, value := range findAll(h, name) {
			if n++; n > maxSignatures {
				return malformed(name, fmt.Sprintf("is malformed: there are more than %d signatures", maxSignatures))
			}
			if err := s.readSignature(name, value, r); err != nil {
				return err
			}
		}
		if count := find(h, name).count; count > 1 && !s.d.SignatureRepeats {
			return find(h, name).once(name)
		}
	}
	if n == 0 {
		return find(h, s.signature).signatureOnce(s.signature)
	}
	return nil
}

// signatureName returns the first header's name for -1, and then those of the others.
func (s *Described) signatureName(i int) string {
	if i < 0 {
		return s.signature
	}
	return s.more[i]
}

func (s *Described) readSignature(name, value string, r *stated) error {
	if s.d.SignatureLabel != "" {
		return s.readPairs(value, r)
	}
	text, found := strings.CutPrefix(value, s.d.SignaturePrefix)
	if !found || !s.readOne(text, r) {
		return malformed(name, "is malformed: it must be "+s.form())
	}
	return nil
}

// readOne reads an encoded signature.
func (s *Described) readOne(text string, r *stated) bool {
	if s.d.Algorithm == ECDSAP256 {
		var room [maxECDSA]byte
		_, ok := decodeECDSA(&room, text)
		r.list, r.n = text, 1
		return ok
	}
	if r.n > 0 { // anyEqual reads it again
		var decoded digest
		r.n++
		return s.d.Encoding.decode(&decoded, s.d.Algorithm.size(), text)
	}
	r.n = 1
	return s.d.Encoding.decode(&r.first, s.d.Algorithm.size(), text)
}

// readHeaders checks the headers that are parts of the text.
func (s *Described) readHeaders(h http.Header) error {
	for _, parts := range [...][]part{s.text.head, s.text.tail} {
		for i := range parts {
			p := &parts[i]
			if p.kind != partHeader {
				continue
			}
			value := find(h, p.literal)
			if err := value.once(p.literal); err != nil {
				return err
			}
			if !p.form.holds(value.text) {
				return malformed(p.literal, "is malformed: "+p.form.says)
			}
		}
	}
	return nil
}

// form says what a signature looks like.
func (s *Described) form() string {
	form := s.d.Encoding.form(s.d.Algorithm.size())
	if s.d.Algorithm == ECDSAP256 {
		form = "an ECDSA signature in ASN.1 and base64"
	}
	if s.d.SignaturePrefix != "" {
		return s.d.SignaturePrefix + " and " + form
	}
	return form
}

// listForm says what a list without a signature lacks.
func (s *Described) listForm() string {
	switch s.d.List {
	case TimeThenSignatures:
		return "it must be a time and, behind commas, signatures of " + s.form()
	case KeyedSignatures:
		return fmt.Sprintf("it has no signature of the form ID/%s/%s", s.d.SignatureLabel, s.form())
	}
	return fmt.Sprintf("it has no signature of the form %s=%s", s.d.SignatureLabel, s.form())
}

const (
	maxPairs   = 32
	maxCovered = 16
)

// readPairs reads a list of "label=value". Except for signatures, a repeated label does
// not count: which of two times is meant would have to be guessed.
func (s *Described) readPairs(value string, r *stated) error {
	r.list = value
	signatures, times, covering := 0, 0, 0
	for n, rest, more := 1, value, true; more; n++ {
		if n > maxPairs {
			return malformed(s.signature, fmt.Sprintf("is malformed: it has more than %d parts", maxPairs))
		}
		var pair string
		pair, rest, more = s.cutPair(rest)
		label, text := s.item(pair, n)
		switch label {
		case s.d.SignatureLabel:
			if signatures++; signatures > maxSignatures {
				return malformed(s.signature, fmt.Sprintf("is malformed: it has more than %d signatures", maxSignatures))
			}
			var decoded digest
			if s.d.Encoding.decode(&decoded, s.d.Algorithm.size(), text) {
				if r.n == 0 {
					r.first = decoded
				}
				r.n++
			}
		case "":
		case s.d.TimestampLabel:
			if times++; times > 1 && (s.d.List != GroupedList || text != r.timestamp) {
				return malformed(s.signature, "is malformed: it has two times")
			}
			r.timestamp = text
		case s.d.HeadersLabel:
			if covering++; covering > 1 {
				return malformed(s.signature, "is malformed: it names headers twice")
			}
			r.covered = text
		}
	}
	if r.n == 0 {
		return malformed(s.signature, "is malformed: "+s.listForm())
	}
	if s.d.HeadersLabel != "" {
		return s.readCovered(r)
	}
	return nil
}

// readCovered checks the headers that the sender says it has signed. A full stop is
// refused in their names because one separates them from their values.
func (s *Described) readCovered(r *stated) error {
	n := 0
	for name := range strings.SplitSeq(r.covered, " ") {
		if n++; n > maxCovered {
			return malformed(s.signature, fmt.Sprintf("is malformed: it names more than %d headers", maxCovered))
		}
		if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isTokenRune(c) || c == '.' || c >= 'A' && c <= 'Z' }) {
			return malformed(s.signature, "is malformed: it must name the headers that it covers, in lower case with one space between them")
		}
		value := findSpelled(r.header, name)
		if value.count != 1 {
			return value.once(http.CanonicalHeaderKey(name))
		}
		// The values are joined by full stops and could be split in other ways, except
		// for the first one if it has none.
		if n == 1 && s.id != "" && strings.EqualFold(name, s.id) && s.ids.check(s.id, value.text) == nil {
			r.id = value.text
		}
	}
	return nil
}

// anyEqual compares in constant time, with no early exit between the signatures.
func (s *Described) anyEqual(r *stated, mac *digest) bool {
	size := s.d.Algorithm.size()
	if r.n == 1 {
		return subtle.ConstantTimeCompare(mac[:size], r.first[:size]) == 1
	}
	if s.d.SignatureLabel == "" {
		return s.anyHeaderEqual(r, mac)
	}
	match := 0
	for n, rest, more := 1, r.list, true; more; n++ {
		var pair string
		pair, rest, more = s.cutPair(rest)
		var decoded digest
		label, text := s.item(pair, n)
		if label == s.d.SignatureLabel && s.d.Encoding.decode(&decoded, size, text) {
			match |= subtle.ConstantTimeCompare(mac[:size], decoded[:size])
		}
	}
	return match == 1
}

// anyHeaderEqual reads all headers again that readSignatures has found well-formed.
func (s *Described) anyHeaderEqual(r *stated, mac *digest) bool {
	size := s.d.Algorithm.size()
	match := 0
	for i := -1; i < len(s.more); i++ {
		for _, value := range findAll(r.header, s.signatureName(i)) {
			var decoded digest
			if s.d.Encoding.decode(&decoded, size, strings.TrimPrefix(value, s.d.SignaturePrefix)) {
				match |= subtle.ConstantTimeCompare(mac[:size], decoded[:size])
			}
		}
	}
	return match == 1
}

// cutPair cuts off the first pair of a list, and the spaces behind it if there may be some.
func (s *Described) cutPair(list string) (pair, rest string, more bool) {
	if i := strings.IndexByte(list, ' '); s.d.List == GroupedList && i >= 0 && !strings.Contains(list[:i], ",") {
		return list[:i], list[i+1:], true
	}
	pair, rest, more = cutByte(list, s.separator)
	if s.d.SpacedList {
		rest = strings.TrimLeft(rest, " ")
	}
	return pair, rest, more
}

// item returns the label and the value of the n-th part of a list, counted from 1.
func (s *Described) item(part string, n int) (label, value string) {
	switch {
	case s.d.List == TimeThenSignatures && n == 1:
		return s.d.TimestampLabel, part
	case s.d.List == TimeThenSignatures:
		return s.d.SignatureLabel, part
	case s.d.List == KeyedSignatures:
		_, part, _ = cutByte(part, '/')
		label, value, _ = cutByte(part, '/')
		return label, value
	}
	label, value, _ = cutByte(part, '=')
	return label, value
}

func cutByte(s string, separator byte) (before, after string, found bool) {
	if i := strings.IndexByte(s, separator); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
