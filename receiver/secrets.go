package receiver

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

var (
	// ErrUnknownKey is what a lookup returns for a name that nobody has. The request
	// is answered with 401, like one with a wrong signature.
	ErrUnknownKey = errors.New("receiver: nobody has a secret under this name")

	// ErrLookup: the secret could not be looked up, so nobody knows whether the signature
	// is right. The answer is 503, and neither 401 nor 2xx.
	ErrLookup = errors.New("receiver: the secret could not be looked up")
)

// Keyholder is the owner of the secret with which a request must be signed.
type Keyholder struct {
	// Scope belongs to this keyholder alone: it keeps their events apart from all others.
	// If several names lead to one keyholder, it must not be the name that was looked up:
	// names are not signed, and the same request, sent again under another name, would
	// have a second effect.
	Scope string

	Keys *signing.Keyring
}

// Lookup finds the keyholder of a name, which was taken from the request and is not
// verified. It must return [ErrUnknownKey] if it is sure that the name has no keyholder,
// and another error if it could not find out. Several goroutines call it at once, but
// never two for one name, unless [Secrets.Forget] was called between.
type Lookup func(ctx context.Context, name string) (Keyholder, error)

// SecretsConfig has the optional settings of Secrets. The zero value and nil are valid.
type SecretsConfig struct {
	// Verifier has the schemes, the tolerance and the clock, for all keyholders.
	Verifier signing.VerifierConfig

	// Size is how many keyholders are remembered, and how many unknown names besides. The
	// least recently used are forgotten first.
	// Defaults to 1024.
	Size int

	// TTL is how long a keyholder is remembered, and so for how long a revoked secret
	// may still be accepted; Forget ends it at once.
	// Defaults to 5 min.
	TTL time.Duration

	// NegativeTTL is how long an unknown name is remembered. A wrong signature has a
	// remembered keyholder looked up again, if the last time is at least this long
	// ago, so that a new secret counts at once.
	// Defaults to 10 s.
	NegativeTTL time.Duration

	// Timeout bounds one lookup.
	// Defaults to 2 s.
	Timeout time.Duration

	// Lookups is how many run at once; more wait, within their Timeout.
	// Defaults to 16.
	Lookups int
}

// Secrets is a [Verifier] for many keyholders. The path or a header of a request names
// its keyholder, and the application's [Lookup] finds the keys. [NewSecrets] makes one.
// It is safe for concurrent use and starts nothing.
//
// The name in the request only says which keys to try: the signature decides. An
// unknown name is answered like a wrong signature, after the same work.
type Secrets struct {
	nameOf   func(signing.Message) string
	lookup   Lookup
	cfg      SecretsConfig
	stranger *signing.Verifier // has keys that nobody else has
	flight   singleflight.Group
	room     *semaphore.Weighted
	memory   *keyholders
}

var _ Verifier = (*Secrets)(nil)

// NewSecrets makes Secrets whose name is found by nameOf ([NameInPath],
// [NameInHeader], or a function of one's own, which sees a request that is not
// verified) and whose keys come from lookup. A nil cfg means all defaults. All
// problems are reported at once.
func NewSecrets(nameOf func(signing.Message) string, lookup Lookup, cfg *SecretsConfig) (*Secrets, error) {
	s := &Secrets{nameOf: nameOf, lookup: lookup}
	if cfg != nil {
		s.cfg = *cfg
	}
	c := &s.cfg
	c.Size = cmp.Or(c.Size, 1024)
	c.TTL = cmp.Or(c.TTL, 5*time.Minute)
	c.NegativeTTL = cmp.Or(c.NegativeTTL, 10*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Lookups = cmp.Or(c.Lookups, 16)
	if c.Verifier.Now == nil {
		c.Verifier.Now = time.Now
	}
	var problems []error
	if nameOf == nil {
		problems = append(problems, errors.New("receiver: the secrets have no function that finds the name: give NameInPath or NameInHeader"))
	}
	if lookup == nil {
		problems = append(problems, errors.New("receiver: the secrets have no lookup: give the function that finds a keyholder by name"))
	}
	for _, setting := range []struct {
		name  string
		value int64
	}{
		{"Size", int64(c.Size)}, {"TTL", int64(c.TTL)}, {"NegativeTTL", int64(c.NegativeTTL)},
		{"Timeout", int64(c.Timeout)}, {"Lookups", int64(c.Lookups)},
	} {
		if setting.value < 0 {
			problems = append(problems, fmt.Errorf("receiver: SecretsConfig.%s is %d: it must be positive, or 0 for the default", setting.name, setting.value))
		}
	}
	var err error
	s.stranger, err = newStranger(c.Verifier)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s.room = semaphore.NewWeighted(int64(c.Lookups))
	s.memory = newKeyholders(c.Size, c.TTL, c.NegativeTTL)
	return s, nil
}

// newStranger makes a verifier that refuses everything at the cost of the others. It
// serves checks that need no key, and names that have no keyholder. One of its keys suits
// each scheme: the text of 64 hex digits is also base64 and base64url.
func newStranger(cfg signing.VerifierConfig) (*signing.Verifier, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	edwards, err := signing.ParseSecret("whsk_" + base64.StdEncoding.EncodeToString(private.Seed()))
	if err != nil {
		return nil, err
	}
	curve, err := strangersECDSA()
	if err != nil {
		return nil, err
	}
	var random [32]byte
	rand.Read(random[:]) // never fails
	hmac, err := signing.ParseSecret(hex.EncodeToString(random[:]))
	if err != nil {
		return nil, err
	}
	modulus, err := strangersRSA()
	if err != nil {
		return nil, err
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: edwards}, signing.Key{Secret: curve}, signing.Key{Secret: modulus}, signing.Key{Secret: hmac})
	if err != nil {
		return nil, err
	}
	return signing.NewVerifier(keys, &cfg)
}

func strangersECDSA() (signing.Secret, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signing.Secret{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return signing.Secret{}, err
	}
	return signing.ParseECDSAPublicKey(base64.StdEncoding.EncodeToString(der))
}

// strangersRSA takes an odd number that nobody else knows for the modulus. To find two primes
// takes long, and nothing is ever signed with them.
func strangersRSA() (signing.Secret, error) {
	var n [256]byte
	rand.Read(n[:]) // never fails
	n[0], n[len(n)-1] = n[0]|0x80, n[len(n)-1]|1
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(n[:]), E: 65537})
	if err != nil {
		return signing.Secret{}, err
	}
	return signing.ParseRSAPublicKey(base64.StdEncoding.EncodeToString(der))
}

// NameInPath takes the last segment of the URL's path as the name, unescaped, as in POST
// /webhooks/{name}. A slash in a name is escaped in its URL (url.PathEscape).
func NameInPath(m signing.Message) string {
	u, err := url.ParseRequestURI(m.URL)
	if err != nil {
		return ""
	}
	// EscapedPath alone would lose an escaped slash beside a character that ought to be escaped.
	escaped := cmp.Or(u.RawPath, u.EscapedPath())
	name, _ := url.PathUnescape(escaped[strings.LastIndexByte(escaped, '/')+1:]) // what was parsed is well-formed
	return name
}

// NameInHeader takes a header's value as the name. A header that is there several times
// names nobody.
func NameInHeader(header string) func(signing.Message) string {
	header = http.CanonicalHeaderKey(header)
	return func(m signing.Message) string {
		if values := m.Header[header]; len(values) == 1 {
			return values[0]
		}
		return ""
	}
}

// Forget has the next request under the name look it up again, for whoever has just
// changed or revoked its secret. Other processes have memories of their own.
func (s *Secrets) Forget(name string) {
	s.memory.forget(name)
	s.flight.Forget(name)
}

// Precheck implements [Verifier]. It looks nothing up.
func (s *Secrets) Precheck(h http.Header) error { return s.stranger.Precheck(h) }

// Verify implements [Verifier]. A [Receiver] bounds the lookup by the request's time
// as well.
func (s *Secrets) Verify(m signing.Message) (signing.Verified, error) {
	v, _, _, err := s.verify(context.Background(), m, false)
	return v, err
}

// VerifyFacts implements [FactVerifier].
func (s *Secrets) VerifyFacts(m signing.Message) (signing.Verified, signing.Facts, error) {
	v, f, _, err := s.verify(context.Background(), m, true)
	return v, f, err
}

// BodyFacts implements [FactVerifier]. It looks nothing up.
func (s *Secrets) BodyFacts(body []byte) signing.Facts { return s.stranger.BodyFacts(body) }

// maxName bounds what a stranger can make the memory hold.
const maxName = 256

func (s *Secrets) verify(ctx context.Context, m signing.Message, facts bool) (v signing.Verified, f signing.Facts, scope string, err error) {
	var name string
	err = contain(func() error {
		name = s.nameOf(m)
		return nil
	})
	if err != nil {
		return v, f, "", fmt.Errorf("%w: finding the name: %w", ErrLookup, err)
	}
	if name == "" || len(name) > maxName {
		return v, f, "", s.refuse(m)
	}
	name = strings.Clone(name) // else what is remembered would keep the whole URL
	holder, err := s.find(ctx, name, nil)
	if err != nil {
		return v, f, "", s.orRefuse(m, err)
	}
	v, f, err = verifyFacts(holder.verifier, m, facts)
	if !errors.Is(err, signing.ErrSignatureMismatch) && !errors.Is(err, signing.ErrNoValidKey) {
		return v, f, holder.scope, err
	}
	if s.cfg.Verifier.Now().Sub(holder.at) < s.cfg.NegativeTTL {
		return v, f, "", err
	}
	if holder, err = s.find(ctx, name, holder); err != nil {
		return v, f, "", s.orRefuse(m, err)
	}
	v, f, err = verifyFacts(holder.verifier, m, facts)
	return v, f, holder.scope, err
}

func (s *Secrets) orRefuse(m signing.Message, err error) error {
	if errors.Is(err, ErrUnknownKey) {
		return s.refuse(m)
	}
	return err
}

// refuse does the work that a known name costs, so that the time tells nobody which
// names are known.
func (s *Secrets) refuse(m signing.Message) error {
	if _, err := s.stranger.Verify(m); err != nil && reasonOf(err) != ReasonSignature {
		return err
	}
	return fmt.Errorf("%w: %w", signing.ErrNoValidKey, ErrUnknownKey)
}

// find returns who has the name, newer than old if there is one. Those who want the
// same at the same time share one lookup.
func (s *Secrets) find(ctx context.Context, name string, old *keyholder) (*keyholder, error) {
	now := s.cfg.Verifier.Now()
	if old == nil {
		if holder, known := s.memory.get(name, now); known {
			return holder, unknownIfNil(holder)
		}
	}
	// The first caller may leave: the lookup serves all that wait for it.
	shared := context.WithoutCancel(ctx)
	result := s.flight.DoChan(name, func() (any, error) {
		if holder, known := s.memory.get(name, now); known && holder != nil && holder != old {
			return holder, nil // another one was faster
		}
		return s.ask(shared, name)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		holder, _ := r.Val.(*keyholder)
		return holder, unknownIfNil(holder)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrLookup, ctx.Err())
	}
}

func unknownIfNil(holder *keyholder) error {
	if holder == nil {
		return ErrUnknownKey
	}
	return nil
}

// ask returns a nil holder for an unknown name. Failures are not remembered.
func (s *Secrets) ask(ctx context.Context, name string) (*keyholder, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.room.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: %d lookups were running: %w", ErrLookup, s.cfg.Lookups, err)
	}
	defer s.room.Release(1)
	since := s.memory.changes()
	var found Keyholder
	err := contain(func() (err error) {
		found, err = s.lookup(ctx, name)
		return err
	})
	now := s.cfg.Verifier.Now()
	if errors.Is(err, ErrUnknownKey) {
		s.memory.put(name, nil, now, since)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLookup, err)
	}
	if found.Keys == nil {
		return nil, fmt.Errorf("%w: the lookup returned neither a keyring nor an error: for a name that nobody has it must be ErrUnknownKey", ErrLookup)
	}
	if err := ident.Scope(found.Scope); err != nil {
		return nil, fmt.Errorf("%w: the Scope that it returned: %w", ErrLookup, err)
	}
	var verifier *signing.Verifier
	err = contain(func() (err error) { // of a scheme of one's own; nobody else would catch it here
		verifier, err = signing.NewVerifier(found.Keys, &s.cfg.Verifier)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the keyring that it returned: %w", ErrLookup, err)
	}
	holder := &keyholder{verifier: verifier, scope: found.Scope, at: now}
	s.memory.put(name, holder, now, since)
	return holder, nil
}
