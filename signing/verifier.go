package signing

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// DefaultTolerance is how far a timestamp may be from the verifier's clock, on
// either side.
const DefaultTolerance = 300 * time.Second

// VerifierConfig has the settings of a [Verifier].
type VerifierConfig struct {
	// Schemes are the ones that are accepted, and no request can choose another.
	// With several, the first whose signature header is there decides: if it refuses, the
	// next is not asked.
	//
	// Defaults to StandardWebhooks{} and then TimestampBody{}, without the one that no secret
	// of the keyring suits. A sender of this module signs by both. By the former, a receiver
	// verifies all through a rotation, with the old secret or with the new one. TimestampBody
	// alone has one signature: see there what a rotation asks of a receiver. It comes first if
	// no secret begins with whsec_ or is an Ed25519 key: such a sender signs StandardWebhooks
	// with others alone.
	Schemes []Scheme
	// Tolerance is how far a timestamp may lie from now, in the past and in the
	// future, at least a second; fractions of a second do not count.
	// Defaults to DefaultTolerance.
	Tolerance time.Duration
	// Deduplicated must be set for a scheme whose ReplayDefence is [DedupAlone], and
	// means nothing to others. It says that the user of the verifier drops duplicates by
	// [Facts.DedupKey] for as long as a secret is used. With such a scheme nothing else
	// stops a captured request from being sent again.
	Deduplicated bool
	// UnsignedBody must be set for a scheme whose signature covers parts of the body alone,
	// such as Mailgun's, or nothing, as an [UnsignedToken] or PayPal's, and means nothing to
	// others. It says that the user of the verifier takes nothing from the body but the
	// [Facts] that are not Unsigned. Somebody who has captured one request can change all
	// else, so a receiver must fetch it.
	UnsignedBody bool
	// Now is this side's clock. Defaults to time.Now.
	Now func() time.Time
}

// Verifier checks that requests were signed with a key of its keyring, lately. It
// is safe for concurrent use.
type Verifier struct {
	keys      *Keyring
	schemes   []verifying
	facts     []FactReader // of each scheme, or nil
	tolerance time.Duration
	now       func() time.Time
}

// verifying is the half of a [Scheme] that a Verifier needs. One of the fields is set.
// They are no interface that all of them implement: behind one, arguments passed by
// pointer would go to the heap, and arguments passed by value would be copied at each
// step, which takes a tenth of the time of verifying.
type verifying struct {
	timestampBody    *timestampBody
	standardWebhooks *standardWebhooks
	described        *Described
	other            Scheme
}

// verifyingHalf prepares once what the schemes of this package would otherwise find out
// at every request. It goes by the concrete types and not by a method: a scheme that
// embeds one of them must keep its own methods.
func verifyingHalf(s Scheme) verifying {
	switch s := s.(type) {
	case TimestampBody:
		return verifying{timestampBody: &timestampBody{s.names()}}
	case StandardWebhooks:
		return verifying{standardWebhooks: s.verifying()}
	case *Described:
		return verifying{described: s}
	default:
		return verifying{other: s}
	}
}

func (s *verifying) precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	switch {
	case s.timestampBody != nil:
		return s.timestampBody.Precheck(h, now, tolerance)
	case s.standardWebhooks != nil:
		return s.standardWebhooks.Precheck(h, now, tolerance)
	case s.described != nil:
		return s.described.Precheck(h, now, tolerance)
	}
	return s.other.Precheck(h, now, tolerance)
}

// verify looks at the clock only where something depends on the time: the clock takes a
// twentieth of the time of verifying.
func (s *verifying) verify(m *Message, keys *Keyring, clock func() time.Time, tolerance time.Duration, v *Verified) (err error) {
	var now time.Time
	if s.described == nil || s.described.timed || keys.bounded {
		now = clock()
	}
	switch {
	case s.timestampBody != nil:
		*v, err = s.timestampBody.Verify(*m, keys, now, tolerance)
	case s.standardWebhooks != nil:
		*v, err = s.standardWebhooks.Verify(*m, keys, now, tolerance)
	case s.described != nil:
		err = s.described.verify(m, keys, now, tolerance, v)
	default:
		*v, err = s.other.Verify(*m, keys, now, tolerance)
	}
	return err
}

// NewVerifier returns a Verifier, or an error that names all problems of its arguments. A
// nil config takes what a sender of this module signs; see VerifierConfig.Schemes. A scheme
// of the config that can use no secret of the keyring is an error that matches
// [ErrSecretUnsuited]. So is a keyring with no secret for either default scheme.
func NewVerifier(keys *Keyring, cfg *VerifierConfig) (*Verifier, error) {
	var c VerifierConfig
	if cfg != nil {
		c = *cfg
	}
	v := &Verifier{keys: keys, tolerance: c.Tolerance, now: c.Now}
	if len(c.Schemes) == 0 {
		c.Schemes = suited(DefaultSchemes(), keys)
		if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return k.Secret.m.listed() }) {
			slices.Reverse(c.Schemes)
		}
	}
	if v.tolerance == 0 {
		v.tolerance = DefaultTolerance
	}
	if v.now == nil {
		v.now = time.Now
	}
	if err := v.check(c.Schemes, &c); err != nil {
		return nil, err
	}
	for _, s := range c.Schemes {
		v.schemes = append(v.schemes, verifyingHalf(s))
		facts, _ := s.(FactReader)
		v.facts = append(v.facts, facts)
	}
	return v, nil
}

// suited returns the schemes that can verify with a key of the keyring. If there are none,
// it returns all, which NewVerifier then refuses.
func suited(schemes []Scheme, keys *Keyring) []Scheme {
	var can []Scheme
	for _, s := range schemes {
		if c, ok := s.(checker); ok && c.check(keys) == nil {
			can = append(can, s)
		}
	}
	if can == nil {
		return schemes
	}
	return can
}

// checker is a scheme that can say why it can verify nothing with a keyring.
type checker interface{ check(*Keyring) error }

// KeyChecker is a [Scheme] that can say why it can verify nothing with a keyring: then
// [NewVerifier] says so, and not every request. The error matches [ErrSecretUnsuited].
type KeyChecker interface {
	Scheme
	CheckKeys(*Keyring) error
}

func (v *Verifier) check(schemes []Scheme, c *VerifierConfig) error {
	var problems []error
	if v.keys == nil && !ownKeys(schemes) {
		problems = append(problems, errors.New("signing: a verifier needs a keyring: make one with NewKeyring"))
	}
	if v.tolerance < time.Second {
		problems = append(problems, fmt.Errorf("signing: the tolerance is %v: it must be at least 1s", v.tolerance))
	}
	for i, s := range schemes {
		if s == nil {
			problems = append(problems, fmt.Errorf("signing: scheme %d is nil: leave it out, or give one", i))
			continue
		}
		if s, ok := s.(checker); ok {
			problems = append(problems, s.check(v.keys))
		}
		if s, ok := s.(KeyChecker); ok && v.keys != nil {
			problems = append(problems, s.CheckKeys(v.keys))
		}
		problems = append(problems, checkCoverage(s, c), checkPlace(s, schemes[i+1:], len(schemes) > 1))
	}
	return errors.Join(problems...)
}

// checkCoverage asks whoever takes a weak scheme to say that they know.
func checkCoverage(s Scheme, c *VerifierConfig) error {
	var body, time error
	if covers, ok := s.(interface{ CoversBody() bool }); ok && !covers.CoversBody() && !c.UnsignedBody {
		body = fmt.Errorf("signing: the signatures of %s do not cover the body, so that whoever captures a request can change it: take nothing from it but what Facts says is signed, and set VerifierConfig.UnsignedBody", s.Name())
	}
	if says, ok := s.(replayDefender); ok && says.ReplayDefence() == DedupAlone && !c.Deduplicated {
		time = fmt.Errorf("signing: the signatures of %s cover no time, so that a captured request stays valid: deduplicate by Facts.DedupKey and set VerifierConfig.Deduplicated", s.Name())
	}
	return errors.Join(body, time)
}

// checkPlace refuses schemes that other ones cannot stand beside, or behind.
func checkPlace(s Scheme, behind []Scheme, beside bool) error {
	if _, token := s.(*UnsignedToken); token && beside {
		return fmt.Errorf("signing: requests of %s show the secret, with which anybody could sign under another scheme: it must be the only scheme", s.Name())
	}
	if in, ok := s.(interface{ inBodyAlone() bool }); ok && in.inBodyAlone() && len(behind) > 0 {
		return fmt.Errorf("signing: the signatures of %s are in the body, so that no header says whose a request is: it must be the last scheme", s.Name())
	}
	return nil
}

func ownKeys(schemes []Scheme) bool {
	for _, s := range schemes {
		if _, own := s.(OwnKeys); !own {
			return false
		}
	}
	return true
}

// checkWith reports why a scheme can verify nothing: its names are wrong, or no key of
// the keyring suits it.
func (n headerNames) checkWith(keys *Keyring, scheme string, suits func(*material) bool) error {
	err := n.check()
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return suits(k.Secret.m) }) {
		err = errors.Join(err, fmt.Errorf("%w: the keyring has no key with which %s can verify", ErrSecretUnsuited, scheme))
	}
	return err
}

// TriedKey names a key without its secret.
type TriedKey struct {
	ID          string
	Fingerprint string // of its secret; see [Secret.Fingerprint]
}

// String returns both, for a log.
func (k TriedKey) String() string { return fmt.Sprintf("%q (fingerprint %s)", k.ID, k.Fingerprint) }

// Tried returns the keys that a signature is compared with now, for the log of one that
// matches none of them: they can be compared with the other side's fingerprints.
func (v *Verifier) Tried() []TriedKey {
	if len(v.schemes) == 0 {
		return nil
	}
	var tried []TriedKey
	try := v.keys.verifying(v.now())
	for _, i := range try.index[:try.n] {
		k := v.keys.keys[i]
		tried = append(tried, TriedKey{ID: k.ID, Fingerprint: k.Secret.Fingerprint()})
	}
	return tried
}

// Precheck makes all checks that need no body. A request that passes is not verified yet.
func (v *Verifier) Precheck(h http.Header) error {
	if len(v.schemes) == 0 {
		return ErrNoValidKey
	}
	now := v.now()
	var absent error
	for i := range v.schemes {
		err := v.schemes[i].precheck(h, now, v.tolerance)
		if err == nil || !errors.Is(err, ErrNotSigned) {
			return err
		}
		absent = cmp.Or(absent, err)
	}
	return absent
}

// Verify checks the whole message and returns the facts that its signature has proved. It
// does not need Precheck to have been called.
func (v *Verifier) Verify(m Message) (verified Verified, err error) {
	_, err = v.verify(&m, &verified)
	return verified, err
}

// VerifyFacts is Verify, and also reads the facts of the event. If a [FactReader] returns
// no ID, the bytes of m tell the event from others.
func (v *Verifier) VerifyFacts(m Message) (verified Verified, facts Facts, err error) {
	i, err := v.verify(&m, &verified)
	if err != nil {
		return Verified{}, Facts{}, err
	}
	if v.facts[i] == nil {
		return verified, Facts{ID: verified.ID}.Of(m), nil
	}
	return verified, v.facts[i].Facts(m, verified).Of(m), nil
}

// verify also returns the index of the scheme that has decided.
func (v *Verifier) verify(m *Message, verified *Verified) (int, error) {
	if len(v.schemes) == 0 { // a zero Verifier accepts nothing
		return 0, ErrNoValidKey
	}
	var absent error
	for i := range v.schemes {
		err := v.schemes[i].verify(m, v.keys, v.now, v.tolerance, verified)
		// A failure of the scheme whose signature is there is final: trying the others
		// would let the client choose the weakest.
		if err == nil || !errors.Is(err, ErrNotSigned) {
			return i, err
		}
		absent = cmp.Or(absent, err)
	}
	return 0, absent
}
