package httpsig

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/signing"
)

const (
	signatureHeader = "Signature"
	inputHeader     = "Signature-Input"
	maxHeader       = 8 << 10 // of each header that is read or signed
	maxSignature    = 1024    // bytes: of an RSA key of 8192 bits
	maxUnix         = 99_999_999_999
)

// input is what a signature states of itself in Signature-Input (RFC 9421 section 2.3).
type input struct {
	label  string
	list   string // the components
	params string // the components and the parameters

	created, expires          int64
	nonce, alg, keyID, tag    string
	hasNonce, hasAlg, hasKey  bool
	hasTag, hasCreated, hasEx bool
}

func malformed(header, problem string) error {
	return signing.NewHeaderError(signing.ErrMalformedHeader, header, problem)
}

// once returns the value of a header that must be there once.
func once(h http.Header, name string, absent error) (string, error) {
	text, err := signing.OnlyHeader(h, name, absent)
	if err == nil && len(text) > maxHeader {
		return "", malformed(name, fmt.Sprintf("has %d bytes: at most %d are read", len(text), maxHeader))
	}
	return text, err
}

// read makes all checks that need only the two headers of the signature.
func (s *Scheme) read(h http.Header, now time.Time, tolerance time.Duration, st *state) (*layout, error) {
	if st == nil {
		return nil, signing.ErrNoValidKey
	}
	signatures, err := once(h, signatureHeader, signing.ErrNotSigned)
	if err != nil {
		return nil, err
	}
	text, err := once(h, inputHeader, signing.ErrMissingHeader)
	if err != nil {
		return nil, err
	}
	if err := s.find(text, st); err != nil {
		return nil, err
	}
	st.text = signing.Text{Algorithm: s.algorithm, Key: s.cfg.Key, KeyID: st.in.keyID}
	if a, its := s.cfg.KeyAlgorithms[st.in.keyID]; its && st.in.hasKey {
		st.text.Algorithm = a
	}
	if err := st.readSignature(signatures); err != nil {
		return nil, err
	}
	if err := s.checkParameters(&st.in, st.text.Algorithm); err != nil {
		return nil, err
	}
	l, err := s.layout(st.in.list)
	if err != nil {
		return nil, err
	}
	return l, s.checkTime(&st.in, now, tolerance)
}

// layout reads the list of components, or knows it: nearly all requests of a sender have one.
func (s *Scheme) layout(list string) (*layout, error) {
	if last := s.last.Load(); last != nil && last.list == list {
		return last, nil
	}
	l, err := readLayout(list, s.covered)
	if err != nil {
		return nil, malformed(inputHeader, "is not acceptable: "+err.Error())
	}
	return l, nil
}

// find reads the whole dictionary, and keeps the one signature that counts.
func (s *Scheme) find(text string, st *state) error {
	scan := scanner{text: text}
	matches := 0
	st.seen.n = 0
	for more := true; more; {
		var other input
		here := &other
		if matches == 0 {
			here = &st.in
			*here = input{}
		}
		if problem := here.read(&scan, s.last.Load()); problem != "" {
			return malformed(inputHeader, "is malformed: "+problem)
		}
		if !st.seen.add(here.label) {
			return malformed(inputHeader, fmt.Sprintf("is malformed: it has a label twice, or more than %d signatures", maxMembers))
		}
		if (s.cfg.Label == "" || s.cfg.Label == here.label) && (s.cfg.Tag == "" || s.cfg.Tag == here.tag) {
			matches++
		}
		var ok bool
		if more, ok = scan.next(); !ok {
			return malformed(inputHeader, "is malformed: a signature is not followed by a comma and another one, or is not in the form in which it is serialised")
		}
	}
	switch {
	case matches == 0:
		return signing.NewHeaderError(signing.ErrNotSigned, inputHeader, "has no signature with the label and the tag that are asked for")
	case matches > 1 && s.cfg.Tag != "":
		return malformed(inputHeader, "has several signatures with the tag that is asked for: set Config.Label to the one that counts")
	case matches > 1:
		return malformed(inputHeader, "has several signatures: set Config.Label or Config.Tag to the one that counts")
	}
	return nil
}

// read reads one member and returns what is wrong, or "".
func (in *input) read(s *scanner, last *layout) string {
	var ok bool
	if in.label, ok = s.key(); !ok || !s.take('=') {
		return `it must be like sig1=("@method" "content-digest");created=1618884473`
	}
	start := s.at
	var seen keys
	if last != nil && strings.HasPrefix(s.text[s.at:], last.list) {
		s.at += len(last.list)
	} else if !s.innerList() {
		return "the components of a signature are no list as it is serialised, or more than 32"
	}
	in.list = s.text[start:s.at]
	for n := 0; s.take(';'); n++ {
		name, ok := s.key()
		if !ok || n == maxParameters {
			return "a signature has more than 16 parameters, or one without a name"
		}
		if !seen.add(name) {
			return "a parameter of a signature is there twice"
		}
		if problem := in.parameter(s, name); problem != "" {
			return problem
		}
	}
	in.params = s.text[start:s.at]
	return ""
}

// parameter reads the value of one. Those that RFC 9421 does not have are signed like all, and
// mean nothing here.
func (in *input) parameter(s *scanner, name string) string {
	switch name {
	case "created":
		return readUnix(s, &in.created, &in.hasCreated)
	case "expires":
		return readUnix(s, &in.expires, &in.hasEx)
	case "nonce":
		return readText(s, &in.nonce, &in.hasNonce)
	case "alg":
		return readText(s, &in.alg, &in.hasAlg)
	case "keyid":
		return readText(s, &in.keyID, &in.hasKey)
	case "tag":
		return readText(s, &in.tag, &in.hasTag)
	}
	if s.take('=') && (strings.HasPrefix(s.text[s.at:], "?1") || !s.bareItem()) {
		return "a parameter of a signature is not in the form in which it is serialised"
	}
	return ""
}

func readUnix(s *scanner, to *int64, there *bool) string {
	ok := s.take('=')
	*to, *there = 0, true
	if ok {
		*to, ok = s.integer()
	}
	if !ok || *to < 1 || *to > maxUnix {
		return "created and expires must be the seconds since 1970 in 1 to 11 digits"
	}
	return ""
}

func readText(s *scanner, to *string, there *bool) string {
	ok := s.take('=')
	if ok {
		*to, ok = s.str()
	}
	if *there = true; !ok || *to == "" {
		return "nonce, alg, keyid and tag must be texts in quotation marks that are not empty"
	}
	*to = plain(*to)
	return ""
}

// readSignature reads the dictionary of the signatures, and decodes the one that counts.
func (st *state) readSignature(text string) error {
	s := scanner{text: text}
	encoded, found := "", false
	st.seen.n = 0
	for more := true; more; {
		name, ok := s.key()
		if !ok || !st.seen.add(name) || !s.take('=') {
			return malformed(signatureHeader, "is malformed: it must be like sig1=:BASE64:, each label once")
		}
		value, ok := s.bytes()
		if name == st.in.label {
			encoded, found = value, true
		}
		var next bool
		if more, next = s.next(); !ok || !next {
			return malformed(signatureHeader, "is malformed: a signature is base64 between colons")
		}
	}
	if !found {
		return malformed(signatureHeader, "has no signature under the label that Signature-Input has")
	}
	ok := len(encoded) <= (maxSignature+2)/3*4
	if ok {
		st.signature, ok = decode(st.room[:0], encoded)
	}
	if !ok || !fits(st.text.Algorithm, len(st.signature)) {
		return malformed(signatureHeader, "is malformed: a signature is not the base64 of as many bytes as one of its algorithm has")
	}
	if st.text.Algorithm == signing.ECDSAP256 {
		st.signature = toASN1(st.signature)
	}
	return nil
}

func fits(a signing.Algorithm, size int) bool {
	switch a {
	case signing.HMACSHA256:
		return size == 32
	case signing.Ed25519, signing.ECDSAP256:
		return size == 64
	}
	return size >= 256 && size <= maxSignature
}

func (s *Scheme) checkParameters(in *input, a signing.Algorithm) error {
	switch {
	case in.hasAlg && in.alg != algorithms[a]:
		return malformed(inputHeader, "names another algorithm than "+algorithms[a]+", which is that of the key")
	case !in.hasCreated && !s.cfg.NoCreated:
		return malformed(inputHeader, "has no created, so that nothing tells when it was signed")
	case !in.hasEx && s.cfg.NeedExpires:
		return malformed(inputHeader, "has no expires, which is asked for")
	case in.hasEx && in.hasCreated && in.expires < in.created:
		return malformed(inputHeader, "is malformed: it expires before it was created")
	case !in.hasNonce && s.cfg.NeedNonce:
		return malformed(inputHeader, "has no nonce, which is asked for")
	case !in.hasKey && s.cfg.NeedKeyID:
		return malformed(inputHeader, "has no keyid, which is asked for")
	}
	return nil
}

// checkTime counts whole seconds. Both times are positive and below 10^11, so that no bound
// overflows.
func (s *Scheme) checkTime(in *input, now time.Time, tolerance time.Duration) error {
	unix := now.Unix()
	outside := func(at int64, most time.Duration) error {
		t := time.Unix(at, 0).UTC()
		return &signing.TimestampError{Timestamp: t, Skew: now.Sub(t).Truncate(time.Second), Tolerance: most}
	}
	age := s.cfg.MaxAge
	if age == 0 {
		age = tolerance
	}
	switch {
	case in.hasEx && unix > in.expires:
		return outside(in.expires, 0)
	case !in.hasCreated:
		return nil
	case tolerance < 0 || unix > in.created+int64(age/time.Second):
		return outside(in.created, age)
	case unix < in.created-int64(tolerance/time.Second):
		return outside(in.created, tolerance)
	}
	return nil
}
