package surehook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

const (
	// defaultReach is how far back a sender of this module sends events again by default:
	// sender.Retention.Reach.
	defaultReach = 28 * 24 * time.Hour

	pruneEvery = time.Hour
	pruneAgain = time.Minute // after a failure of the database
)

// Receiver is the receiving side of a service, for the events of one sender. The methods of
// [receiver.Receiver] are its own. It starts nothing until Run. It is safe for concurrent
// use.
type Receiver[Tx any] struct {
	*receiver.Receiver[Tx]
	inTx      receiver.InTx[Tx]
	store     dedup.Store[Tx]
	retention time.Duration
	logger    *slog.Logger
	now       func() time.Time
}

// ReceiverConfig adjusts a Receiver. A nil config and zero fields mean the defaults.
type ReceiverConfig struct {
	// OlderSecrets are accepted too, while a secret is rotated.
	OlderSecrets []string

	// Schemes are the ones that are accepted, as in signing.VerifierConfig: the default is
	// both of a sender of this module, signing.StandardWebhooks first.
	Schemes []signing.Scheme

	// Tolerance is how far a timestamp may lie from now. The default is 300 s.
	Tolerance time.Duration

	// Reach is how far back the sender sends events again. The default is 28 days, which
	// is that of a sender of this module.
	Reach time.Duration

	// Retention is how long markers are kept: Run removes those that are older. It must
	// exceed Reach by dedup.RetentionMargin. The default is 30 days.
	Retention time.Duration

	// Logger gets one record for each request. The default is slog.Default().
	Logger *slog.Logger

	// Now is the clock of timestamps and markers. The default is time.Now.
	Now func() time.Time

	// Receive has the rest: Envelope, Hooks, Timeout, MaxBodyBytes and so on. What
	// NewReceiver and ReceiverConfig say themselves must be zero in it.
	Receive receiver.Config
}

// NewReceiver returns a Receiver that verifies with secret, and keeps its markers and
// versions in store, in the transactions that inTx runs. scope names who sends: two senders
// whose events go into one database have two scopes. It touches no database. The
// error has all that is wrong with what it is given, or else all that package receiver
// refuses.
//
// For several tenants, shared transactions or an inbox, use package receiver.
func NewReceiver[Tx any](inTx receiver.InTx[Tx], store dedup.Store[Tx], scope, secret string, cfg *ReceiverConfig) (*Receiver[Tx], error) {
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
	r.Scope, r.Horizon, r.Logger, r.Now = scope, cmp.Or(c.Reach, defaultReach), c.Logger, c.Now
	r.Retention = cmp.Or(c.Retention, dedup.DefaultRetention)
	inner, err := receiver.New(verifier, inTx, store, &r)
	if err != nil {
		return nil, err
	}
	out := &Receiver[Tx]{Receiver: inner, inTx: inTx, store: store, retention: r.Retention, logger: c.Logger, now: c.Now}
	if out.now == nil {
		out.now = time.Now
	}
	return out, nil
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
	return signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: c.Schemes, Tolerance: c.Tolerance, Now: c.Now})
}

// Run forgets markers that are older than the Retention, at once and then every hour, until
// ctx ends; then it returns nil. A failure of the database is logged, and it is tried again
// a minute later. Several processes may run.
func (r *Receiver[Tx]) Run(ctx context.Context) error {
	for {
		wait := pruneEvery
		if _, err := dedup.Prune(ctx, r.inTx, r.store, r.now().Add(-r.retention), 0); err != nil && ctx.Err() == nil {
			wait = pruneAgain
			logger := r.logger
			if logger == nil {
				logger = slog.Default()
			}
			logger.WarnContext(ctx, "old markers could not be removed; it is tried again", "error", err, "in", wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// overlaps refuses settings of Receive that NewReceiver or ReceiverConfig has.
func (c *ReceiverConfig) overlaps() []error {
	r := &c.Receive
	errs := overlaps("ReceiverConfig.Receive.%s is set: set ReceiverConfig.%s, by which markers are kept and removed", []overlap{
		{"Horizon", "Reach", r.Horizon != 0},
		{"Retention", "Retention", r.Retention != 0},
		{"Logger", "Logger", r.Logger != nil},
		{"Now", "Now", r.Now != nil},
	})
	if r.Scope != "" || r.ScopeOf != nil {
		errs = append(errs, errors.New("surehook: ReceiverConfig.Receive has a scope: give it to NewReceiver; for several, use receiver.New"))
	}
	return errs
}
