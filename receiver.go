package surehook

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// ReceiverConfig adjusts what NewReceiver makes. A nil config and zero fields mean the
// defaults.
type ReceiverConfig struct {
	// OlderSecrets are accepted too, while a secret is rotated.
	OlderSecrets []string

	// Schemes are the ones that are accepted. The first whose signature header is there
	// decides. The default is signing.StandardWebhooks and then signing.TimestampBody, by
	// both of which a sender of this module signs. The former carries signatures of the
	// old and of the new secret during a rotation.
	Schemes []signing.Scheme

	// Tolerance is how far a timestamp may lie from now. The default is 300 s.
	Tolerance time.Duration

	// Reach is how far back the sender sends events again. The default is 28 days, which
	// is that of a sender of this module.
	Reach time.Duration

	// Retention is how long markers are kept: Run removes those that are older. It must
	// exceed Reach by dedup.RetentionMargin, and be the same for all receivers on one
	// store. The default is 30 days.
	Retention time.Duration

	// Logger gets one record for each request. The default is slog.Default().
	Logger *slog.Logger

	// Now is the clock of timestamps and markers. The default is time.Now.
	Now func() time.Time

	// Receive has the rest: Envelope, Hooks, Timeout, MaxBodyBytes and so on. What
	// NewReceiver and ReceiverConfig say themselves must be zero in it.
	Receive receiver.Config
}

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
	errs := c.overlaps()
	if scope == "" {
		errs = append(errs, errors.New("surehook: NewReceiver needs a scope: a name for who sends, which no other sender into this database has"))
	}
	verifier, err := c.verifier(secret)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	r := c.Receive
	r.Reach, r.Retention, r.Logger, r.Now = c.Reach, c.Retention, c.Logger, c.Now
	return receiver.New(verifier, inTx, store, scope, &r)
}

func (c *ReceiverConfig) verifier(secret string) (*signing.Verifier, error) {
	var keys []signing.Key
	var errs []error
	for i, text := range append([]string{secret}, c.OlderSecrets...) {
		s, err := signing.ParseSecret(text)
		if err != nil {
			which := "the secret"
			if i > 0 {
				which = fmt.Sprintf("ReceiverConfig.OlderSecrets[%d]", i-1)
			}
			errs = append(errs, fmt.Errorf("surehook: %s: %w", which, err))
			continue
		}
		keys = append(keys, signing.Key{Secret: s})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	ring, err := signing.NewKeyring(keys...)
	if err != nil {
		return nil, err
	}
	schemes := c.Schemes
	if schemes == nil {
		schemes = []signing.Scheme{signing.StandardWebhooks{}, signing.TimestampBody{}}
	}
	return signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: schemes, Tolerance: c.Tolerance, Now: c.Now})
}

// overlaps refuses settings of Receive that NewReceiver or ReceiverConfig has.
func (c *ReceiverConfig) overlaps() []error {
	r := &c.Receive
	errs := overlaps("ReceiverConfig.Receive.%s is set: set ReceiverConfig.%s, by which markers are kept and removed", []overlap{
		{"Reach", "Reach", r.Reach != 0},
		{"Retention", "Retention", r.Retention != 0},
		{"Logger", "Logger", r.Logger != nil},
		{"Now", "Now", r.Now != nil},
	})
	if r.ScopeOf != nil {
		errs = append(errs, errors.New("surehook: ReceiverConfig.Receive.ScopeOf is set: NewReceiver has one scope; for several, use receiver.New"))
	}
	return errs
}
