package receiver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/signing"
)

// Config has the optional settings of a Receiver. The zero value and nil are valid.
type Config struct {
	// ScopeOf derives the scope from the key that verified the request, for receivers of
	// several senders at one address. It sees nothing else of the request, because
	// nothing else is trustworthy. A scope that is empty or not valid fails the request
	// with 500. With it, New's scope must be empty.
	// Defaults to nil: the scope is New's.
	ScopeOf func(signing.Verified) string

	// Envelope reads the events of another sender, whose bodies do not have this module's
	// form; see [Envelope].
	// Defaults to nil: events of this module.
	Envelope *Envelope

	// Handshake answers the questions of senders that are no signed events, such as Meta's,
	// Dropbox's, X's and Asana's; see [Handshake]. Handler, WrapState and WrapFact use it:
	// route GET to them, too. With a server other than net/http, call [Handshake.Answer]
	// before Receive.
	// Defaults to nil: a GET is answered with 405.
	Handshake *Handshake

	// MaxBodyBytes is the largest size of a body that is accepted.
	// Defaults to 1 MiB.
	MaxBodyBytes int64

	// Timeout bounds a request as a whole: reading its body, the transaction with
	// all its retries, and the answer. It should be shorter than the sender's own,
	// so that the sender sees the answer rather than a timeout. A transaction that has
	// waited for a connection for half of the time that was left is not begun. A shorter
	// http.Server.ReadTimeout still bounds the reading.
	// Defaults to 8 s.
	Timeout time.Duration

	// Retention is how long markers are kept: Run removes those that are older. If you
	// remove them in another way (dedup.Prune), keep to it. It must exceed Reach and
	// Horizon together by dedup.RetentionMargin. Run removes the markers of all scopes, so
	// all receivers on one store must have the same Retention. A sender of this module has
	// it as Retention.Receivers (package sender). Defaults to 32 days.
	Retention time.Duration

	// Reach is how far back the sender may begin to send an event again, by redelivering,
	// replaying or resuming. For a sender of this module it is Retention.Reach (package
	// sender).
	// Defaults to 28 days, which is the default of a sender of this module.
	Reach time.Duration

	// Horizon is for how long the sender tries what it sends, or sends again. For a sender
	// of this module it is the horizon of its retries, or the longest that it allows
	// subscriptions.
	// Defaults to 72 h, which is the default of a sender of this module.
	Horizon time.Duration

	// Hooks are called with the outcome of each request.
	Hooks Hooks

	// Logger gets one record for each request. Its level is Debug if the event was taken, and
	// Info if it was stale and therefore skipped, or is being applied already. It is Warn if
	// the event was not taken, and Error if it became a dead letter or if the fault is on
	// this side (500, and what a handler under WrapState has refused with whatever status).
	// It is never given a body, a header or a secret. Defaults to slog.Default(), looked up
	// at each use.
	Logger *slog.Logger

	// NoDiagnosis turns off the search for the probable mistake behind a request that was
	// refused for its headers, its timestamp or its signature. Such a mistake is a body that
	// was parsed and serialised again, a secret in another encoding, or a clock that is off.
	// A few requests in a row are searched, and then one every 10 s. The result is in the
	// log; it changes no verdict and is never in an answer. See [signing.Verifier.Diagnose].
	NoDiagnosis bool

	// Now is the clock for markers and dead letters. The window of timestamps is
	// the verifier's.
	// Defaults to time.Now.
	Now func() time.Time
}

const (
	defaultMaxBodyBytes = 1 << 20
	defaultTimeout      = 8 * time.Second
)

func (c *Config) withDefaults() Config {
	var out Config
	if c != nil {
		out = *c
	}
	out.Envelope = out.Envelope.withDefaults()
	out.MaxBodyBytes = cmp.Or(out.MaxBodyBytes, defaultMaxBodyBytes)
	out.Timeout = cmp.Or(out.Timeout, defaultTimeout)
	out.Retention = cmp.Or(out.Retention, dedup.DefaultRetention)
	out.Reach = cmp.Or(out.Reach, dedup.DefaultReach)
	out.Horizon = cmp.Or(out.Horizon, dedup.DefaultHorizon)
	if out.Now == nil {
		out.Now = time.Now
	}
	return out
}

func (c *Config) validate() error {
	problems := []error{c.Handshake.check(c.Envelope)}
	if c.MaxBodyBytes < 0 {
		problems = append(problems, fmt.Errorf("receiver: MaxBodyBytes is %d: it must be positive", c.MaxBodyBytes))
	}
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("receiver: Timeout is %s: it must be positive", c.Timeout))
	}
	if err := dedup.CheckRetention(c.Retention, c.Reach, c.Horizon); err != nil {
		problems = append(problems, fmt.Errorf("receiver: Config.Retention for Config.Reach and Config.Horizon: %w", err))
	}
	return errors.Join(problems...)
}
