package httpsig

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/signing"
)

// Config has the optional settings of a Scheme. The zero value and nil are valid.
type Config struct {
	// Name is the scheme's name in [signing.Verified] and in logs.
	// Defaults to "httpsig".
	Name string

	// Label is the name of the signature in both headers, and Tag its parameter tag. Others
	// are not looked at. A request without such a signature is not signed, to this scheme.
	// Without both, a request has exactly one signature. Sign defaults Label to "sig1".
	Label, Tag string

	// URL is the one to which the sender sends, as it was told. Components of the target
	// come from it, because proxies change what a request says of itself. If it ends behind
	// the host, as https://example.com does, the path and the query are those of the request.
	// It must be set if such a component is covered, and requests that cover one are
	// refused otherwise.
	URL string

	// Key is how the key of an HMAC is made of a secret. Defaults to signing.TextKey.
	Key signing.KeyForm

	// KeyAlgorithms has the algorithms of keys that differ from the scheme's, by Key.ID.
	// It needs NeedKeyID: the key of a request that names none would be tried with the wrong one.
	KeyAlgorithms map[string]signing.Algorithm

	// MaxAge is how long after created a signature is taken. Defaults to the verifier's
	// tolerance, which bounds how far created may lie in the future.
	MaxAge time.Duration

	// NoCreated also takes signatures without created. Nothing then stops a captured request
	// but deduplication: see [signing.DedupAlone].
	NoCreated bool

	// These ask for parameters. Each is checked if it is there. A signature is refused after
	// expires. keyid must be the ID of a key of the keyring, which alone is tried. alg must
	// be the key's algorithm. A nonce is not remembered: deduplication goes by the event.
	NeedExpires, NeedNonce, NeedKeyID bool

	// These say where the [signing.Facts] are, as in a [signing.Description]. The headers must
	// be covered, each in its plain form.
	IDHeader, TypeHeader          string
	IDField, TypeField, TimeField string

	// Signer signs in place of the keyring, such as a key of RSA or ECDSA or one that stays in
	// a key store. SignerID is its keyid. Without a Signer, Sign uses a key of the keyring.
	Signer   crypto.Signer
	SignerID string

	// Lifetime is how long after created a signature that Sign makes expires.
	// Defaults to MaxAge, or to signing.DefaultTolerance. It needs NeedExpires.
	Lifetime time.Duration
}

// Scheme verifies and makes signatures of requests. It is safe for concurrent use.
type Scheme struct {
	cfg       Config
	algorithm signing.Algorithm
	covered   []component
	list      string // covered, as Sign writes it
	target    target
	hasTarget bool
	fixed     bool
	facts     *signing.Described
	last      atomic.Pointer[layout]
	states    sync.Pool // of *state
}

var (
	_ signing.FactReader = (*Scheme)(nil)
	_ signing.KeyChecker = (*Scheme)(nil)
)

// algorithms are those of RFC 9421 section 3.3 that are known here, by the keys that they take.
var algorithms = map[signing.Algorithm]string{
	signing.HMACSHA256:   "hmac-sha256",
	signing.Ed25519:      "ed25519",
	signing.ECDSAP256:    "ecdsa-p256-sha256",
	signing.RSAPSSSHA512: "rsa-pss-sha512",
	signing.RSASHA256:    "rsa-v1_5-sha256",
}

// New returns the scheme for signatures of one algorithm that cover at least these
// components, in whatever order. A component is written as in RFC 9421, such as "@method"
// or "content-digest", and with a parameter as in `@query-param;name="id"`.
// "content-digest" must be among them: without it, the body would not be signed. Sign
// covers them in this order.
//
// The algorithm is signing.HMACSHA256, Ed25519, ECDSAP256, RSAPSSSHA512 or RSASHA256. A nil
// cfg means all defaults. All problems are reported at once.
func New(algorithm signing.Algorithm, covered []string, cfg *Config) (*Scheme, error) {
	s, err := newScheme(algorithm, covered, cfg)
	if s != nil && !has(s.covered, digestID) {
		err = errors.Join(err, errors.New(`httpsig: "content-digest" must be covered: without it, anybody who captures a request can change its body`))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newScheme(algorithm signing.Algorithm, covered []string, cfg *Config) (*Scheme, error) {
	s := &Scheme{algorithm: algorithm}
	if cfg != nil {
		s.cfg = *cfg
	}
	s.cfg.KeyAlgorithms = maps.Clone(s.cfg.KeyAlgorithms)
	if s.cfg.Name == "" {
		s.cfg.Name = "httpsig"
	}
	s.states.New = func() any { return new(state) }
	problems := []error{s.readCovered(covered), s.readURL(), s.checkNames(), s.checkTimes()}
	for _, a := range append([]signing.Algorithm{algorithm}, values(s.cfg.KeyAlgorithms)...) {
		if algorithms[a] == "" {
			problems = append(problems, errors.New("httpsig: the algorithm must be HMACSHA256, Ed25519, ECDSAP256, RSAPSSSHA512 or RSASHA256"))
		}
	}
	if len(s.cfg.KeyAlgorithms) > 0 && !s.cfg.NeedKeyID {
		problems = append(problems, errors.New("httpsig: Config.KeyAlgorithms needs NeedKeyID: a request that names no key tries all with one algorithm"))
	}
	facts, err := signing.NewDescribed(signing.Description{
		Name: s.cfg.Name, SignatureHeader: "Signature", Signed: "{body}",
		IDField: s.cfg.IDField, TypeField: s.cfg.TypeField, TimeField: s.cfg.TimeField,
	})
	s.facts = facts
	return s, errors.Join(append(problems, err)...)
}

func values(m map[string]signing.Algorithm) (all []signing.Algorithm) {
	for _, a := range m {
		all = append(all, a)
	}
	return all
}

func (s *Scheme) readCovered(covered []string) error {
	var problems []error
	var ids []string
	for _, text := range covered {
		c, err := parseComponent(text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("httpsig: component %q: %w", text, err))
			continue
		case has(s.covered, c.id):
			problems = append(problems, fmt.Errorf("httpsig: component %q is there twice", text))
			continue
		case c.ofTarget() && s.cfg.URL == "":
			problems = append(problems, fmt.Errorf("httpsig: component %q needs Config.URL, since what a request says of itself a proxy may have changed: %s", text, giveURL))
		}
		s.covered = append(s.covered, c)
		ids = append(ids, c.id)
	}
	if len(covered) > maxItems {
		problems = append(problems, fmt.Errorf("httpsig: %d components are covered: at most %d can be", len(covered), maxItems))
	}
	s.list = "(" + strings.Join(ids, " ") + ")"
	return errors.Join(problems...)
}

func (s *Scheme) readURL() (err error) {
	if s.cfg.URL == "" {
		return nil
	}
	s.hasTarget = true
	s.target, s.fixed, err = parseTarget(s.cfg.URL)
	return err
}

func (s *Scheme) checkNames() error {
	var problems []error
	if l := (scanner{text: s.cfg.Label}); s.cfg.Label != "" {
		if _, ok := l.key(); !ok || !l.done() {
			problems = append(problems, fmt.Errorf("httpsig: Config.Label is %q: a label has lower-case letters, digits, \"_\", \"-\", \".\" and \"*\", and begins with a letter", s.cfg.Label))
		}
	}
	if !printable(s.cfg.Tag) || !printable(s.cfg.SignerID) {
		problems = append(problems, errors.New("httpsig: Config.Tag and Config.SignerID have printable ASCII characters alone"))
	}
	for _, h := range []struct{ field, name string }{{"IDHeader", s.cfg.IDHeader}, {"TypeHeader", s.cfg.TypeHeader}} {
		if h.name != "" && !has(s.covered, `"`+strings.ToLower(h.name)+`"`) {
			problems = append(problems, fmt.Errorf("httpsig: Config.%s is %q, which must be covered: otherwise anybody could change it", h.field, h.name))
		}
	}
	s.cfg.IDHeader, s.cfg.TypeHeader = http.CanonicalHeaderKey(s.cfg.IDHeader), http.CanonicalHeaderKey(s.cfg.TypeHeader)
	return errors.Join(problems...)
}

func (s *Scheme) checkTimes() error {
	if a := s.cfg.MaxAge; a != 0 && a < time.Second {
		return fmt.Errorf("httpsig: Config.MaxAge is %v: it must be at least 1s", a)
	}
	switch {
	case s.cfg.Lifetime == 0 && s.cfg.MaxAge > 0:
		s.cfg.Lifetime = s.cfg.MaxAge
	case s.cfg.Lifetime == 0:
		s.cfg.Lifetime = signing.DefaultTolerance
	case s.cfg.Lifetime < time.Second || !s.cfg.NeedExpires:
		return fmt.Errorf("httpsig: Config.Lifetime is %v: it must be at least 1s, and needs NeedExpires", s.cfg.Lifetime)
	}
	return nil
}

// Name returns Config.Name.
func (s *Scheme) Name() string { return s.cfg.Name }

// ReplayDefence is [signing.TimeWindow], or [signing.DedupAlone] with Config.NoCreated.
func (s *Scheme) ReplayDefence() signing.ReplayDefence {
	if s.cfg.NoCreated {
		return signing.DedupAlone
	}
	return signing.TimeWindow
}

// CheckKeys implements [signing.KeyChecker].
func (s *Scheme) CheckKeys(keys *signing.Keyring) error {
	if keys.Suits(&signing.Text{Algorithm: s.algorithm, Key: s.cfg.Key}) {
		return nil
	}
	for id, a := range s.cfg.KeyAlgorithms {
		if keys.Suits(&signing.Text{Algorithm: a, Key: s.cfg.Key, KeyID: id}) {
			return nil
		}
	}
	return fmt.Errorf("%w: the keyring has no key with which %s can verify %s", signing.ErrSecretUnsuited, s.cfg.Name, algorithms[s.algorithm])
}

// Precheck implements [signing.Scheme].
func (s *Scheme) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	st := s.state()
	defer s.done(st)
	l, err := s.read(h, now, tolerance, st)
	if err != nil {
		return err
	}
	return s.base(h, nil, l, st)
}

// Verify implements [signing.Scheme]. It compares the digest of the body last, so that only a
// body whose digest is signed is hashed.
func (s *Scheme) Verify(m signing.Message, keys *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	st := s.state()
	defer s.done(st)
	l, err := s.read(m.Header, now, tolerance, st)
	if err != nil {
		return signing.Verified{}, err
	}
	if err := s.base(m.Header, &m, l, st); err != nil {
		return signing.Verified{}, err
	}
	st.text.Bytes = st.content
	keyID, err := keys.VerifyText(&st.text, st.signature, now)
	if err != nil {
		return signing.Verified{}, err
	}
	if has(s.covered, digestID) && !st.digests.match(m.Body) {
		return signing.Verified{}, fmt.Errorf("httpsig: %w: the body has another digest than the signed one", signing.ErrSignatureMismatch)
	}
	if s.last.Load() != l {
		s.last.Store(l)
	}
	v := signing.Verified{Scheme: s.cfg.Name, KeyID: keyID, ID: st.id}
	if st.in.created != 0 {
		v.Timestamp = time.Unix(st.in.created, 0).UTC()
	}
	return v, nil
}

// Facts implements [signing.FactReader].
func (s *Scheme) Facts(m signing.Message, v signing.Verified) signing.Facts {
	f := s.facts.Facts(m, v)
	if s.cfg.IDHeader != "" && v.ID != "" {
		f.ID = v.ID
	}
	if s.cfg.TypeHeader != "" {
		if kind, err := signing.OnlyHeader(m.Header, s.cfg.TypeHeader, signing.ErrMissingHeader); err == nil {
			f.Type = kind
		}
	}
	return f
}

// state is what one request is read into. It comes from a pool, so that verifying allocates
// nothing.
type state struct {
	in        input
	text      signing.Text
	content   []byte // what is signed
	signature []byte
	room      [maxSignature]byte // of the signature
	digests   digests
	seen      keys
	id        string
}

func (s *Scheme) state() *state {
	if s == nil || s.states.New == nil { // a zero Scheme
		return nil
	}
	return s.states.Get().(*state)
}

const maxKept = 16 << 10

// done keeps nothing of the request but room.
func (s *Scheme) done(st *state) {
	if st == nil || cap(st.content) > maxKept {
		return
	}
	st.in, st.text, st.content, st.signature, st.id = input{}, signing.Text{}, st.content[:0], nil, ""
	clear(st.seen.names[:])
	s.states.Put(st)
}
