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

// Config has what an Inbox can do without. The zero value and nil are valid.
type Config struct {
	// Workers is how many events are applied at a time, and how many bodies are in
	// memory at most.
	// Defaults to 8.
	Workers int

	// Ordered applies the events of an object one at a time, lower versions first. It
	// is decided when an event is recorded: all processes must have it alike, and a
	// change does not move what is in the inbox.
	Ordered bool

	// Lease is for how long an event is kept from others while it is being applied. It
	// must exceed the receiver's Config.Timeout, which bounds that: New checks it. What a
	// killed process held waits for as long.
	// Defaults to 1 min.
	Lease time.Duration

	// Poll is how often an idle inbox is looked at for what other processes have
	// recorded, what is due again, and leases that have ended. What this process records
	// is taken at once.
	// Defaults to 1 s.
	Poll time.Duration

	// Policy says when an attempt that failed is repeated, and for how long that goes
	// on. An event whose failures are the database's own is not given up for its age.
	// Its Schedule defaults to delays of 1 s, doubled up to 1 h; the rest to what
	// package backoff has: varied by a fifth, given up after 72 h.
	Policy backoff.Policy

	// MaxAttempts is after how many attempts an event is given up, whatever its age and
	// the reasons; attempts that were lost with their process count.
	// Defaults to 100.
	MaxAttempts int

	// Hooks are told what happens.
	Hooks Hooks

	// Logger gets a record of what fails, and nothing of bodies.
	// Defaults to slog.Default(), looked up at each use.
	Logger *slog.Logger
}

// Hooks are told what happens, by the goroutine that does it and outside of any
// transaction, so they must not block. Every one is optional. What becomes of each
// event is told by the receiver's own hooks.
type Hooks struct {
	// Retry is called when an attempt has failed and is to be repeated after a while. An
	// error that matches receiver.ErrNotKept tells that no attempt can succeed.
	Retry func(ctx context.Context, c Claim, err error, after time.Duration)

	// LeaseLost is called when an attempt ended too late and was rolled back, since the
	// event had been claimed again: Lease is too short, or the process stood still.
	LeaseLost func(ctx context.Context, c Claim)
}

const (
	defaultWorkers     = 8
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
		out.Policy.Schedule = backoff.Exponential{Base: retryBase, Max: retryMax}
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
	}{{"Lease", c.Lease}, {"Poll", c.Poll}} {
		if span.value < 0 {
			errs = append(errs, fmt.Errorf("inbox: %s is %v: it must be positive", span.name, span.value))
		}
	}
	return errors.Join(errs...)
}
