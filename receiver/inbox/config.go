package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/backoff"
)

// Config has the optional settings of an Inbox. The zero value and nil are valid.
type Config struct {
	// Workers is how many events are applied at a time, and how many bodies are in
	// memory at most.
	// Defaults to 8.
	Workers int

	// Ordered applies the events of an object one at a time, lower versions first. It
	// is decided when an event is recorded: all processes must have it alike, and a
	// change does not move what is in the inbox.
	Ordered bool

	// Timeout bounds an attempt: the function's context ends with it. No sender waits, so it
	// may be longer than the receiver's Config.Timeout, which bounds a request.
	// Defaults to 30 s, or to the receiver's Config.Timeout if that is longer.
	Timeout time.Duration

	// Lease is how long an event is kept from others while it is being applied. It must
	// exceed Timeout: New checks it. After a process was killed, its events wait until their
	// leases end.
	// Defaults to 1 min.
	Lease time.Duration

	// Poll is how often an idle inbox is searched for events that other processes have
	// recorded, events that are due again, and leases that have ended. Events that this
	// process records are taken at once.
	// Defaults to 1 s.
	Poll time.Duration

	// Policy says when a failed attempt is repeated, and when the event is given up. An
	// event whose failures are the database's own is not given up for its age. Its
	// Schedule defaults to delays of 1 s, doubled up to 1 h; the rest to what package
	// backoff has: varied by a fifth, given up after 72 h. A Schedule of your own that panics
	// is logged, and the default one has its say.
	Policy backoff.Policy

	// MaxAttempts is after how many attempts an event is given up, at any age and for any
	// reason. Attempts that were lost with their process count.
	// Defaults to 100.
	MaxAttempts int

	// Hooks are called with failed attempts and lost leases.
	Hooks Hooks

	// Logger gets a record of each failure, and of events of other inboxes that wait for long,
	// and nothing of bodies.
	// Defaults to slog.Default(), looked up at each use.
	Logger *slog.Logger
}

// Hooks are called by the goroutine that applies the event, outside of any transaction,
// so they must not block. Every one is optional. A panic in a hook is logged and changes
// nothing. The receiver's own hooks report the outcome of each event.
type Hooks struct {
	// Retry is called when an attempt has failed and is to be repeated after a while. An
	// error that matches receiver.ErrNotKept says that no attempt can succeed.
	Retry func(ctx context.Context, c Claim, err error, after time.Duration)

	// LeaseLost is called when an attempt ended too late and was rolled back, since the
	// event had been claimed again: Lease is too short, or the process stood still.
	LeaseLost func(ctx context.Context, c Claim)
}

const (
	defaultWorkers     = 8
	defaultTimeout     = 30 * time.Second
	defaultLease       = time.Minute
	defaultPoll        = time.Second
	defaultMaxAttempts = 100
	retryBase          = time.Second
	retryMax           = time.Hour
)

func (c *Config) withDefaults() Config {
	var out Config
	if c != nil {
		out = *c
	}
	out.Workers = cmp.Or(out.Workers, defaultWorkers)
	out.Lease = cmp.Or(out.Lease, defaultLease)
	out.Poll = cmp.Or(out.Poll, defaultPoll)
	out.MaxAttempts = cmp.Or(out.MaxAttempts, defaultMaxAttempts)
	if out.Policy.Schedule == nil {
		out.Policy.Schedule = defaultSchedule
	}
	return out
}

func (c *Config) validate() error {
	errs := []error{c.Policy.Validate()}
	for _, number := range []struct {
		name  string
		value int
	}{{"Workers", c.Workers}, {"MaxAttempts", c.MaxAttempts}} {
		if number.value < 0 {
			errs = append(errs, fmt.Errorf("inbox: %s is %d: it must be positive", number.name, number.value))
		}
	}
	for _, span := range []struct {
		name  string
		value time.Duration
	}{{"Timeout", c.Timeout}, {"Lease", c.Lease}, {"Poll", c.Poll}} {
		if span.value < 0 {
			errs = append(errs, fmt.Errorf("inbox: %s is %v: it must be positive", span.name, span.value))
		}
	}
	return errors.Join(errs...)
}
