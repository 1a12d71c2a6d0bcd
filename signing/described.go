package signing

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Described is the [Scheme] that a [Description] describes. It is safe for
// concurrent use, and the zero value verifies nothing.
//
// It holds requests to the rules that the package promises for all schemes. Headers are
// there exactly once and have their exact form. Where a header has the time, the window is
// decided before anything is computed. One signature is computed per key, however many a
// request holds.
type Described struct {
	d         Description
	text      template
	bodyParts int // how many parts of the text are read from the body
	separator byte
	signature string   // names of headers, in their canonical spelling
	more      []string // further headers with signatures
	timestamp string
	id        string
	ids       *idForm
	timed     bool      // the signature covers a time
	inHeaders bool      // the text has headers by their names
	looks     bool      // something of what is signed must be looked for before it is verified
	posts     bool      // the text has the method
	contents  sync.Pool // of *[]byte: texts for Ed25519, which needs them in one piece; of *hashState for ECDSA
}

var (
	_ Scheme     = (*Described)(nil)
	_ FactReader = (*Described)(nil)
)

// NewDescribed returns the scheme of a description. Its error names all problems of the
// description.
func NewDescribed(d Description) (*Described, error) {
	if d.Algorithm == PlainSHA256 {
		return nil, fmt.Errorf("signing: description of %q: PlainSHA256 is no HMAC and weaker than one: if you accept that, make the scheme with NewPlainHash", d.Name)
	}
	return newDescribed(d)
}

func newDescribed(d Description) (*Described, error) {
	d.MoreSignatureHeaders = slices.Clone(d.MoreSignatureHeaders)
	if err := d.check(); err != nil {
		return nil, err
	}
	return describe(d), nil
}

// describe makes a scheme of a description that is known to be right.
func describe(d Description) *Described {
	text, _ := parseSigned(d.Signed)
	ids, posts := idsIn(&text), text.has(partMethod)
	text.fix(d.URL)
	s := &Described{
		d:         d,
		text:      text,
		bodyParts: text.bodyParts(),
		separator: cmp.Or(d.Separator, ','),
		signature: http.CanonicalHeaderKey(d.SignatureHeader),
		timestamp: http.CanonicalHeaderKey(d.TimestampHeader),
		id:        http.CanonicalHeaderKey(d.IDHeader),
		ids:       ids,
		inHeaders: text.has(partHeader),
		posts:     posts,
		timed:     d.TimestampHeader != "" || d.TimestampLabel != "" || d.TimestampField != "",
	}
	for _, name := range d.MoreSignatureHeaders {
		s.more = append(s.more, http.CanonicalHeaderKey(name))
	}
	s.looks = posts || s.bodyParts > 0 || d.SignatureField != "" || d.TimestampField != "" && s.text.has(partTimestamp)
	return s
}

// readMessage reads what is outside of the headers and needed before anything is verified:
// a signature and parts of the text that stand in the body, and the method. It returns
// false for a message that cannot have been signed.
func (s *Described) readMessage(m *Message, r *stated) bool {
	if s.posts && m.Method != "" && m.Method != http.MethodPost {
		return false
	}
	if s.d.SignatureField != "" {
		text, found := jsonText(m.Body, s.d.SignatureField)
		text, prefixed := strings.CutPrefix(text, s.d.SignaturePrefix)
		if !found || !prefixed || !s.readOne(text, r) {
			return false
		}
	}
	if s.d.TimestampField != "" && s.text.has(partTimestamp) {
		r.timestamp, _ = jsonText(m.Body, s.d.TimestampField)
		if _, ok := s.d.TimestampFormat.parse(r.timestamp); !ok {
			return false
		}
	}
	return s.bodyParts == 0 || s.readBodyParts(m.Body, r)
}

// Description returns the scheme's description. It is a start for a scheme of one's own
// that differs in a header or an algorithm.
func (s *Described) Description() Description {
	d := s.d
	d.MoreSignatureHeaders = slices.Clone(d.MoreSignatureHeaders)
	return d
}

// Name returns the Description's Name.
func (s *Described) Name() string { return s.d.Name }

// ReplayDefence is [TimeWindow] if the signature covers a time, and [DedupAlone]
// otherwise.
func (s *Described) ReplayDefence() ReplayDefence {
	if s.timed {
		return TimeWindow
	}
	return DedupAlone
}

// CoversBody says whether the text that is signed has the whole body.
func (s *Described) CoversBody() bool { return s.text.covers() || s.d.Name == "" }

func (s *Described) inBodyAlone() bool { return s.signature == "" && s.d.Name != "" }

func (s *Described) check(keys *Keyring) error {
	if s.d.Name == "" {
		return errors.New("signing: a Described that was not made by NewDescribed describes nothing")
	}
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return s.suits(k.Secret.m) }) {
		return fmt.Errorf("%w: the keyring has no key with which %s can verify", ErrSecretUnsuited, s.d.Name)
	}
	return nil
}

func (s *Described) suits(m *material) bool {
	switch s.d.Algorithm {
	case Ed25519:
		return m.verify != nil
	case ECDSAP256:
		return m.ecdsa != nil
	}
	return s.hmacKey(m) != nil
}

func (s *Described) hmacKey(m *material) *hmacKey { return m.hmacKey(s.d.Key) }

// Precheck implements [Scheme].
func (s *Described) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	var r stated
	return s.read(h, now, tolerance, &r)
}

// Verify implements [Scheme]. Where the time is in the body, it also returns
// [ErrNoTimestamp] and *[TimestampError] for a body that is signed rightly.
func (s *Described) Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error) {
	var v Verified
	err := s.verify(&m, keys, now, tolerance, &v)
	return v, err
}

func (s *Described) verify(m *Message, keys *Keyring, now time.Time, tolerance time.Duration, v *Verified) error {
	var r stated
	if err := s.read(m.Header, now, tolerance, &r); err != nil {
		return err
	}
	if s.looks && !s.readMessage(m, &r) || s.d.Algorithm == PlainSHA256 && !unextended(m.Body) {
		return ErrSignatureMismatch
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	for _, i := range try.index[:try.n] {
		secret := keys.keys[i].Secret.m
		if !s.suits(secret) {
			continue
		}
		failure = ErrSignatureMismatch
		if s.matches(secret, &r, s.covered(m.Body)) {
			keys.matched(i)
			return s.verified(&r, m.Body, keys.keys[i].ID, now, tolerance, v)
		}
	}
	return failure
}

func (s *Described) matches(secret *material, r *stated, body []byte) bool {
	switch s.d.Algorithm {
	case Ed25519:
		return s.matchesEd25519(secret, r, body)
	case ECDSAP256:
		return s.matchesECDSA(secret, r, body)
	}
	key := s.hmacKey(secret)
	state := key.begin(s.d.Algorithm)
	state.head = s.appendHead(state.head, r)
	if len(s.text.tail) > 0 {
		state.tail = s.appendTail(state.tail, r)
	}
	var mac digest
	key.end(s.d.Algorithm, state, body, &mac)
	return s.anyEqual(r, &mac)
}

// covered is the body, if it is a part of the text as it is.
func (s *Described) covered(body []byte) []byte {
	if s.text.body {
		return body
	}
	return nil
}

func (s *Described) matchesEd25519(secret *material, r *stated, body []byte) bool {
	content, _ := s.contents.Get().(*[]byte)
	if content == nil {
		content = new([]byte)
	}
	*content = s.appendTail(append(s.appendHead((*content)[:0], r), body...), r)
	n := len(*content)
	*content = append(*content, r.first[:]...) // here too, so that r need not be on the heap
	ok := secret.verify((*content)[:n], (*content)[n:])
	if cap(*content) <= maxKeptContent {
		s.contents.Put(content)
	}
	return ok
}

const maxKeptContent = 1 << 20

// matchesECDSA hashes the text in its pieces. The state comes from a pool that no key
// belongs to.
func (s *Described) matchesECDSA(secret *material, r *stated, body []byte) bool {
	state, _ := s.contents.Get().(*hashState)
	if state == nil {
		state = &hashState{hash: sha256.New()}
	}
	state.hash.Reset()
	state.text = s.appendHead(state.text[:0], r)
	state.hash.Write(state.text)
	state.hash.Write(body)
	state.text = s.appendTail(state.text[:0], r)
	state.hash.Write(state.text)
	state.text = state.hash.Sum(state.text[:0])
	var room [maxECDSA]byte
	signature, ok := decodeECDSA(&room, r.list)
	ok = ok && secret.ecdsa(state.text, signature)
	if cap(state.text) <= maxKeptHead {
		s.contents.Put(state)
	}
	return ok
}

type hashState struct {
	hash hash.Hash
	text []byte
}

func (s *Described) verified(r *stated, body []byte, keyID string, now time.Time, tolerance time.Duration, v *Verified) error {
	if s.d.TimestampField != "" {
		var err error
		if r.unix, err = s.bodyTimestamp(body); err != nil {
			return err
		}
		if err := checkWindow(r.unix, now, s.tolerance(tolerance)); err != nil {
			return err
		}
	}
	v.Scheme, v.KeyID, v.ID = s.d.Name, keyID, r.id
	if s.timed {
		v.Timestamp = time.Unix(r.unix, 0).UTC()
	}
	return nil
}

func (s *Described) bodyTimestamp(body []byte) (int64, error) {
	raw := jsonAt(body, s.d.TimestampField)
	if len(raw) > 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	}
	if unix, ok := s.d.TimestampFormat.parse(string(raw[:min(len(raw), maxRFC3339+1)])); ok {
		return unix, nil
	}
	return 0, fmt.Errorf("%w: its field %s must be %s", ErrNoTimestamp, s.d.TimestampField, s.d.TimestampFormat.form())
}

func (s *Described) tolerance(t time.Duration) time.Duration {
	if s.d.MaxTolerance > 0 {
		return min(t, s.d.MaxTolerance)
	}
	return t
}
