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
	// With several, the first whose signature header is there decides.
	// Defaults to TimestampBody{} alone.
	Schemes []Scheme
	// Tolerance is how far a timestamp may lie from now, in the past and in the
	// future, at least a second; fractions of a second do not count.
	// Defaults to DefaultTolerance.
	Tolerance time.Duration
	// Now is this side's clock. Defaults to time.Now.
	Now func() time.Time
}

// Verifier checks that requests were signed with a key of its keyring, lately. It
// is safe for concurrent use.
type Verifier struct {
	keys      *Keyring
	schemes   []verifying
	tolerance time.Duration
	now       func() time.Time
}

// verifying is the half of a [Scheme] that a Verifier needs.
type verifying interface {
	Precheck(h http.Header, now time.Time, tolerance time.Duration) error
	Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error)
}

// verifyingHalf works out once what the schemes of this package would find out at
// every request. It goes by the very types, and not by a method: one that is
// embedded in another scheme must not stand in for that.
func verifyingHalf(s Scheme) verifying {
	switch s := s.(type) {
	case TimestampBody:
		return &timestampBody{s.names()}
	case StandardWebhooks:
		return &standardWebhooks{s.names()}
	default:
		return s
	}
}

// NewVerifier returns a Verifier, or all that is wrong with what it is given. A
// keyring with no secret that a scheme can use is an error that matches
// [ErrSecretUnsuited].
func NewVerifier(keys *Keyring, cfg *VerifierConfig) (*Verifier, error) {
	var c VerifierConfig
	if cfg != nil {
		c = *cfg
	}
	v := &Verifier{keys: keys, tolerance: c.Tolerance, now: c.Now}
	if len(c.Schemes) == 0 {
		c.Schemes = []Scheme{TimestampBody{}}
	}
	if v.tolerance == 0 {
		v.tolerance = DefaultTolerance
	}
	if v.now == nil {
		v.now = time.Now
	}
	if err := v.check(c.Schemes); err != nil {
		return nil, err
	}
	for _, s := range c.Schemes {
		v.schemes = append(v.schemes, verifyingHalf(s))
	}
	return v, nil
}

func (v *Verifier) check(schemes []Scheme) error {
	var problems []error
	if v.keys == nil {
		problems = append(problems, errors.New("signing: a verifier needs a keyring: make one with NewKeyring"))
	}
	if v.tolerance < time.Second {
		problems = append(problems, fmt.Errorf("signing: the tolerance is %v: it must be at least 1s", v.tolerance))
	}
	for i, s := range schemes {
		if s == nil {
			problems = append(problems, fmt.Errorf("signing: scheme %d is nil", i))
			continue
		}
		if s, ok := s.(interface{ check(*Keyring) error }); ok {
			problems = append(problems, s.check(v.keys))
		}
	}
	return errors.Join(problems...)
}

// checkWith reports what keeps a scheme from verifying anything: its names, or a
// keyring in which nothing suits it.
func (n headerNames) checkWith(keys *Keyring, scheme string, suits func(*material) bool) error {
	err := n.check()
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return suits(k.Secret.m) }) {
		err = errors.Join(err, fmt.Errorf("%w: the keyring has no key with which %s can verify", ErrSecretUnsuited, scheme))
	}
	return err
}

// Precheck refuses all that can be refused before the body is read. A request that
// passes is not verified yet.
func (v *Verifier) Precheck(h http.Header) error {
	if len(v.schemes) == 0 {
		return ErrNoValidKey
	}
	now := v.now()
	var absent error
	for _, s := range v.schemes {
		err := s.Precheck(h, now, v.tolerance)
		if err == nil || !errors.Is(err, ErrNotSigned) {
			return err
		}
		absent = cmp.Or(absent, err)
	}
	return absent
}

// Verify checks the whole message and returns what its signature has shown. It
// does not need Precheck to have been called.
func (v *Verifier) Verify(m Message) (Verified, error) {
	if len(v.schemes) == 0 { // a zero Verifier accepts nothing
		return Verified{}, ErrNoValidKey
	}
	now := v.now()
	var absent error
	for _, s := range v.schemes {
		verified, err := s.Verify(m, v.keys, now, v.tolerance)
		// A failure of the scheme whose signature is there is final: trying the others
		// would let whoever sends choose the weakest.
		if err == nil || !errors.Is(err, ErrNotSigned) {
			return verified, err
		}
		absent = cmp.Or(absent, err)
	}
	return Verified{}, absent
}
