package receiver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// Config has the optional settings of a Receiver. The zero value and nil are valid.
type Config struct {
	// Scope keeps the events of one sender apart from those of others in the same store:
	// ids and versions are unique within a scope only. With [Secrets] it must be empty,
	// since each keyholder has a scope.
	// Defaults to "default".
	Scope string

	// ScopeOf derives the scope from the key that verified the request, for receivers of
	// several senders at one address. It sees nothing else of the request, because
	// nothing else is trustworthy. A scope that is empty or not valid fails the request
	// with 500. It cannot be set together with Scope.
	ScopeOf func(signing.Verified) string

	// Envelope reads the events of another sender, whose bodies do not have this module's
	// form; see [Envelope].
	// Defaults to nil: events of this module.
	Envelope *Envelope

	// MaxBodyBytes is the largest size of a body that is accepted.
	// Defaults to 1 MiB.
	MaxBodyBytes int64

	// Timeout bounds a request as a whole: reading its body, the transaction with
	// all its retries, and the answer. It should be shorter than the sender's own,
	// so that the sender sees the answer rather than a timeout. A shorter
	// http.Server.ReadTimeout still bounds the reading.
	// Defaults to 8 s.
	Timeout time.Duration

	// Retention is how long the store keeps markers. It must be the time with which the
	// store is pruned: New only checks it against Horizon. A sender of this module has it
	// as Retention.Receivers (package sender).
	// Defaults to 30 days.
	Retention time.Duration

	// Horizon is the longest time after which the sender may send an event again: not its
	// retries' horizon alone but how far back it redelivers, replays or resumes. For a
	// sender of this module it is Retention.Reach (package sender), whose default is 28
	// days. Retention must exceed it by dedup.RetentionMargin.
	// Defaults to 72 h.
	Horizon time.Duration

	// Hooks are called with the outcome of each request.
	Hooks Hooks

	// Logger gets one record for each request. It is never given a body, a header
	// or a secret.
	// Defaults to slog.Default(), looked up at each use.
	Logger *slog.Logger

	// NoDiagnosis turns off the search for the probable mistake behind a request that was
	// refused for its headers, its timestamp or its signature: a body that was parsed and
	// serialised again, a secret in another encoding, a clock that is off. A few requests
	// in a row are searched, and then one every 10 s. The result is in the log; it
	// changes no verdict and is never in an answer. See [signing.Verifier.Diagnose].
	NoDiagnosis bool

	// Now is the clock for markers and dead letters. The window of timestamps is
	// the verifier's.
	// Defaults to time.Now.
	Now func() time.Time
}

const (
	defaultScope        = "default"
	defaultMaxBodyBytes = 1 << 20
	defaultTimeout      = 8 * time.Second
)

func (c *Config) withDefaults() Config {
	var out Config
	if c != nil {
		out = *c
	}
	if out.ScopeOf == nil {
		out.Scope = cmp.Or(out.Scope, defaultScope)
	}
	out.Envelope = out.Envelope.withDefaults()
	out.MaxBodyBytes = cmp.Or(out.MaxBodyBytes, defaultMaxBodyBytes)
	out.Timeout = cmp.Or(out.Timeout, defaultTimeout)
	out.Retention = cmp.Or(out.Retention, dedup.DefaultRetention)
	out.Horizon = cmp.Or(out.Horizon, dedup.DefaultReach)
	if out.Now == nil {
		out.Now = time.Now
	}
	return out
}

func (c *Config) validate() error {
	var problems []error
	if c.ScopeOf == nil {
		if err := ident.Scope(c.Scope); err != nil {
			problems = append(problems, fmt.Errorf("receiver: Scope: %w", err))
		}
	} else if c.Scope != "" {
		problems = append(problems, errors.New("receiver: both Scope and ScopeOf are set: give one of them"))
	}
	if c.MaxBodyBytes < 0 {
		problems = append(problems, fmt.Errorf("receiver: MaxBodyBytes is %d: it must be positive", c.MaxBodyBytes))
	}
	if c.Timeout < 0 {
		problems = append(problems, fmt.Errorf("receiver: Timeout is %s: it must be positive", c.Timeout))
	}
	if err := dedup.CheckRetention(c.Retention, c.Horizon); err != nil {
		problems = append(problems, fmt.Errorf("receiver: Retention: %w", err))
	}
	return errors.Join(problems...)
}
