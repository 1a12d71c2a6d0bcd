package surehook

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// ReceiverConfig adjusts what NewReceiver makes. A nil config and zero fields mean the
// defaults.
type ReceiverConfig struct {
	// OlderSecrets are accepted too, while a secret is rotated. There may be three.
	OlderSecrets SecretTexts

	// Schemes are the ones that are accepted, as in signing.VerifierConfig: the default is
	// both of a sender of this module. One that asks for Deduplicated or UnsignedBody there
	// needs a verifier of its own, and receiver.New.
	Schemes []signing.Scheme

	// Tolerance is how far a timestamp may lie from now. The default is 300 s.
	Tolerance time.Duration

	// Receive has all that the receiver itself can be told: Reach, Horizon, Retention, Logger,
	// Envelope, Hooks, Timeout, MaxBodyBytes and so on. Its Now is also the clock by which
	// timestamps are checked. ScopeOf must be nil.
	Receive receiver.Config
}

// SecretTexts are secrets in the form in which their issuers show them. A []string can be
// given in its place. Printing, logging or encoding it shows how many there are.
type SecretTexts []string

// String shows how many there are.
func (s SecretTexts) String() string { return fmt.Sprintf("[%d secrets]", len(s)) }

// Format writes String, whatever the verb.
func (s SecretTexts) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalJSON shows what String does.
func (s SecretTexts) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// NewReceiver returns the receiving side of a service, for the events of one sender. It
// verifies with secret, and keeps its markers and versions in store, in the transactions
// that inTx runs. scope names who sends: two senders whose events go into one database
// have two scopes. It touches no database, and starts nothing: the service calls Run,
// which removes old markers. The error has all that is wrong with what it is given, or
// else all that package receiver refuses.
//
// For several tenants, shared transactions or an inbox, use package receiver.
func NewReceiver[Tx any](inTx receiver.InTx[Tx], store dedup.Store[Tx], scope, secret string, cfg *ReceiverConfig) (*receiver.Receiver[Tx], error) {
	var c ReceiverConfig
	if cfg != nil {
		c = *cfg
	}
	var errs []error
	if c.Receive.ScopeOf != nil {
		errs = append(errs, errors.New("surehook: ReceiverConfig.Receive.ScopeOf is set: NewReceiver has one scope; for several, use receiver.New"))
	}
	if scope == "" {
		errs = append(errs, errors.New("surehook: NewReceiver needs a scope: a name for who sends, which no other sender into this database has"))
	}
	verifier, err := c.verifier(secret)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return receiver.New(verifier, inTx, store, scope, &c.Receive)
}

// maxOlderSecrets is how many a signing.Keyring tries besides the newest.
const maxOlderSecrets = 3

func (c *ReceiverConfig) verifier(secret string) (*signing.Verifier, error) {
	var keys []signing.Key
	var errs []error
	if n := len(c.OlderSecrets); n > maxOlderSecrets {
		errs = append(errs, fmt.Errorf("surehook: ReceiverConfig.OlderSecrets has %d secrets: at most %d are tried; leave out those with which nobody signs any more", n, maxOlderSecrets))
	}
	texts := append([]string{secret}, c.OlderSecrets...)
	for i, text := range texts {
		s, err := signing.ParseSecret(text)
		if err != nil {
			which := "the secret"
			if i > 0 {
				which = fmt.Sprintf("ReceiverConfig.OlderSecrets[%d]", i-1)
			}
			errs = append(errs, fmt.Errorf("surehook: %s: %w", which, err))
			continue
		}
		if j := slices.Index(texts[:i], text); j >= 0 {
			same := "the secret itself"
			if j > 0 {
				same = fmt.Sprintf("OlderSecrets[%d]", j-1)
			}
			errs = append(errs, fmt.Errorf("surehook: ReceiverConfig.OlderSecrets[%d] is %s: leave it out", i-1, same))
			continue
		}
		keys = append(keys, signing.Key{Secret: s})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.Reverse(keys) // so that the secret is tried first: a keyring's newest key is the last one
	ring, err := signing.NewKeyring(keys...)
	if err != nil {
		return nil, err
	}
	return signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: c.Schemes, Tolerance: c.Tolerance, Now: c.Receive.Now})
}
