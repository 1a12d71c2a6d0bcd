package soak

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Config has the parameters of a soak. Zero fields mean the defaults.
type Config struct {
	// Store is SQLite or Postgres.
	// Defaults to SQLite.
	Store string

	// Dir is an existing folder for SQLite's files.
	Dir string

	// DSN is the PostgreSQL server, as a URL. Two schemas are made in it and dropped at
	// the end. Its clock must be this machine's.
	DSN string

	// Time is how long the load is, with faults, without the warm-up and the checks
	// after it, which take a few seconds.
	// Defaults to 1 min.
	Time time.Duration

	// WarmUp is how long the first cycle's load is.
	// Defaults to a tenth of Time, at most 1 min.
	WarmUp time.Duration

	// Seed decides all random choices. Defaults to 1.
	Seed uint64

	// Rate is how many events are published a second.
	// Defaults to 25.
	Rate float64

	// Reach is how long records, events and dead letters are kept before they are pruned.
	// Defaults to a sixth of Time, from 20 s to 1 min.
	Reach time.Duration

	// Timeout bounds an attempt, and is the sender's tempo: leases, retries and the time
	// after which a subscription is disabled are multiples of it.
	// Defaults to 500 ms.
	Timeout time.Duration

	// Drain bounds the time after the load until everything is delivered. It takes
	// a second or two on an idle machine. Defaults to 5 min.
	Drain time.Duration

	// Progress, if set, gets lines about the progress.
	Progress func(line string)
}

// maxBacklog is the number of live deliveries above which publishers wait.
const maxBacklog = 1500

// The tempo of the sender. The longest way of a delivery is about horizon + Timeout.
func (c *Config) lease() time.Duration        { return 3 * c.Timeout }
func (c *Config) horizon() time.Duration      { return 7 * c.Timeout }
func (c *Config) disableAfter() time.Duration { return 8 * c.Timeout }

// patience is how long the keeper may wait before it looks at a delivery again, and still
// find it on record. A delivery that has ended is kept for the reach, from the beginning of
// its last attempt. An attempt can take until its lease ends, and its record as long again.
func (c *Config) patience() time.Duration { return max(c.Reach-3*c.lease(), c.Reach/2) }

// objects is how many objects publishers share.
func (c *Config) objects() int { return min(max(int(c.Rate/2), 3), 20) }

func (c Config) withDefaults() (*Config, error) {
	c.Store = cmp.Or(c.Store, SQLite)
	c.Time = cmp.Or(c.Time, time.Minute)
	c.WarmUp = cmp.Or(c.WarmUp, min(c.Time/10, time.Minute))
	c.Seed = cmp.Or(c.Seed, 1)
	c.Rate = cmp.Or(c.Rate, 25)
	c.Reach = cmp.Or(c.Reach, min(max(c.Time/6, 20*time.Second), time.Minute))
	c.Drain = cmp.Or(c.Drain, 5*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 500*time.Millisecond)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	var errs []error
	if c.Store == SQLite && c.Dir == "" {
		errs = append(errs, errors.New("soak: Config.Dir is empty: SQLite needs a folder"))
	}
	if c.Store == Postgres && c.DSN == "" {
		errs = append(errs, errors.New("soak: Config.DSN is empty: it must be the URL of a PostgreSQL server"))
	}
	if c.Reach < c.horizon() {
		errs = append(errs, fmt.Errorf("soak: Config.Reach is %v: it must be at least %v, for how long deliveries are tried", c.Reach, c.horizon()))
	}
	if c.Rate < 0 || c.Time < 0 || c.WarmUp < 0 || c.Drain < 0 || c.Timeout < 0 {
		errs = append(errs, errors.New("soak: a time or the rate in the Config is negative: they must be positive, or zero for the default"))
	}
	return &c, errors.Join(errs...)
}

// rng is a source for one actor.
func (c *Config) rng(actor string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(actor))
	return rand.New(rand.NewPCG(c.Seed, h.Sum64()))
}

func (c *Config) retention() sender.Retention {
	return sender.Retention{
		Reach: c.Reach, Receivers: c.Reach + c.horizon() + dedup.RetentionMargin, Delivered: c.Reach, Events: c.Reach,
		DeadLetters: c.Reach, Notices: c.Reach, Rollups: c.Reach, SubscriptionRollups: c.Reach,
	}
}

func (c *Config) policy() (dispatch.Policy, error) {
	schedule, err := backoff.Fixed(30*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond, 800*time.Millisecond)
	return dispatch.Policy{
		Backoff: backoff.Policy{Schedule: schedule, Horizon: c.horizon(), MaxRetryAfter: 2 * time.Second}, DisableAfter: c.disableAfter(),
	}, err
}
