package catchup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// Config has the optional settings of a Catchup. The zero value and nil are valid.
type Config struct {
	// Name is the name of the feed's cursor. Two feeds that share a name go on from each
	// other's cursor, and miss events: give each feed of one sender a name of its own.
	// Defaults to the scope, so that feeds of two senders have two names.
	Name string

	// Scope is the scope of the markers and the versions. It must be the one under which
	// the sender's posts are taken. See receiver.Trusted.
	// Defaults to the receiver's own; with receiver.Config.ScopeOf or receiver.Secrets it
	// must be given.
	Scope string

	// Limit is how many events are asked for at a time. After a page that was too large, or did
	// not come in time, it is fewer for a while.
	// Defaults to 100.
	Limit int

	// Wait is how long the sender is asked to hold an empty answer open, in whole seconds:
	// from 1 s to 30 s, which is the most that a sender of this module takes. The sender may
	// answer earlier.
	// Defaults to 30 s.
	Wait time.Duration

	// Every makes Run reconcile at this interval instead of following the feed all the
	// time. It is for consumers that also get posts. Zero: Run follows.
	Every time.Duration

	// Settle is the age, by its occurred_at, at which an event is taken from the feed, so
	// that an event that is just being posted does not count as missed. It only delays:
	// markers decide.
	// Defaults to 0.
	Settle time.Duration

	// RetryMin and RetryMax bound the pauses after failures. They double, and are varied by
	// up to half. They default to 500 ms and to 1 min.
	RetryMin, RetryMax time.Duration

	// Hooks are called with each gap, failure, refusal and reconciliation.
	Hooks Hooks

	// Logger gets a record of each failure, each gap and each refusal, and nothing of
	// bodies.
	// Defaults to slog.Default(), looked up at each use.
	Logger *slog.Logger
}

// Hooks are called by the goroutine that reads the feed, outside of any transaction, so
// they must not block. Every one is optional. A panic in a hook is logged and changes
// nothing. The receiver's own hooks report the outcome of each event.
type Hooks struct {
	// Gap is called when a cursor has expired: the events after it that are not kept any
	// more will not come. It may be called twice for one gap.
	Gap func(ctx context.Context, g Gap)

	// Retry is called before each pause after a failure. event is the id of the event
	// that could not be applied, or "" if the feed could not be read. An event that a post
	// is applying just then is no failure.
	Retry func(ctx context.Context, event string, err error, pause time.Duration)

	// Refused is called for each event that is passed over, before the cursor moves past
	// it. It may be called twice for one event.
	Refused func(ctx context.Context, r Refusal)

	// Reconciled is called after each reconciliation of a Run with Config.Every.
	Reconciled func(ctx context.Context, r Report)
}

// Gap is a part of a feed that was not read and is not kept any more.
type Gap struct {
	After string // the last cursor before it; never empty
	Next  string // the first one after it; "": the beginning of what is kept
}

const (
	formerName      = "default" // every feed's that had no name
	defaultLimit    = 100
	maxLimit        = 200
	minWait         = time.Second
	maxWait         = 30 * time.Second
	defaultWait     = maxWait
	defaultRetryMin = 500 * time.Millisecond
	defaultRetryMax = time.Minute
	// A cursor that moves without events is stored at this interval, which is short
	// enough that it does not expire.
	saveEvery = time.Minute
	// A sender that does not hold empty answers open is asked at this interval.
	askEvery = time.Second
	// An event that occurred this much later than a reconciliation began is not a part of
	// it. The margin allows for the sender's clock.
	beyondPresent = time.Minute
)

func (c *Config) withDefaults(scope string) Config {
	var out Config
	if c != nil {
		out = *c
	}
	out.Scope = cmp.Or(out.Scope, scope)
	out.Name = cmp.Or(out.Name, out.Scope)
	out.Limit = cmp.Or(out.Limit, defaultLimit)
	out.Wait = cmp.Or(out.Wait, defaultWait)
	out.RetryMin = cmp.Or(out.RetryMin, defaultRetryMin)
	out.RetryMax = cmp.Or(out.RetryMax, max(defaultRetryMax, out.RetryMin))
	return out
}

func (c *Config) validate() error {
	var errs []error
	if c.Name != c.Scope { // the scope is checked with the receiver
		errs = append(errs, CheckName(c.Name))
	}
	if c.Limit < 1 || c.Limit > maxLimit {
		errs = append(errs, fmt.Errorf("catchup: Limit is %d: it must be from 1 to %d", c.Limit, maxLimit))
	}
	if c.Wait < minWait || c.Wait > maxWait {
		errs = append(errs, fmt.Errorf("catchup: Wait is %v: it must be from %v to %v", c.Wait, minWait, maxWait))
	}
	if c.Every < 0 || c.Settle < 0 {
		errs = append(errs, fmt.Errorf("catchup: Every %v, Settle %v: neither may be negative", c.Every, c.Settle))
	}
	if c.RetryMin < 0 || c.RetryMax < c.RetryMin {
		errs = append(errs, fmt.Errorf("catchup: RetryMin is %v and RetryMax %v: they must be positive, and RetryMax the longer one", c.RetryMin, c.RetryMax))
	}
	return errors.Join(errs...)
}

// checkScope refuses a scope under which the receiver takes no event, since each would be
// tried again for ever. own is the receiver's; empty: it depends on the request.
func (c *Config) checkScope(own string) error {
	switch {
	case c.Scope == "":
		return errors.New("catchup: Config.Scope is empty, and the receiver's scope depends on whose key verifies: give the scope under which the posts of this feed's sender are taken")
	case own != "" && c.Scope != own:
		return fmt.Errorf("catchup: Config.Scope is %q, and the receiver's is %q: leave it out, or give the receiver of that sender", c.Scope, own)
	}
	if err := ident.Scope(c.Scope); err != nil {
		return fmt.Errorf("catchup: Config.Scope: %w", err)
	}
	return nil
}
