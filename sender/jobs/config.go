package jobs

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	defaultLease         = 30 * time.Second
	minLease             = 100 * time.Millisecond
	defaultPoll          = time.Second
	defaultDrainTimeout  = 30 * time.Second
	defaultRetention     = 30 * 24 * time.Hour
	defaultMaxInput      = 1 << 20
	defaultMaxResult     = 1 << 20
	defaultMaxState      = 256 << 10
	maxBytes             = 64 << 20
	progressAtMost       = time.Second // how old the progress that Get returns can be
	pruneEvery           = 10 * time.Minute
	pruneAtOnce          = 500
	pruneBytes           = 4 << 20         // inputs and results: the pages of a large one are freed one by one
	graceOfDrain         = 5 * time.Second // the time that functions have to return once their contexts have ended
	graceOfWrites        = time.Second     // the time that writes of outcomes have to break off after that
	recordPause          = 100 * time.Millisecond
	recordPauseMax       = 5 * time.Second
	maxErrorBytes        = 1024
	maxIdempotencyKey    = 255
	claimFailedPauseMost = 30 * time.Second
)

// Config adjusts Jobs. A nil config and zero fields mean the defaults.
type Config[Tx any] struct {
	// Announcer announces the completion of jobs that have a callback URL: see
	// NewCallbacks. If it is nil, callback URLs are refused, and jobs that other
	// processes have accepted with one are left to these: Run does not claim them, and
	// Cancel does not end them.
	Announcer Announcer[Tx]

	// Lease is how long a worker has a claimed job before another worker may claim
	// it. A live worker prolongs it in time. The default is 30 s, and the least is
	// 100 ms.
	Lease time.Duration

	// Poll is how often idle workers look for jobs that other processes have
	// submitted, and for those that are due again. The default is 1 s.
	Poll time.Duration

	// DrainTimeout is how long functions may go on when Run's context has ended.
	// Then their contexts end, with ErrDraining. The default is 30 s.
	DrainTimeout time.Duration

	// Retention is how long finished jobs are kept, with their idempotency keys. The
	// default is 30 days.
	Retention time.Duration

	// MaxInputBytes, MaxResultBytes and MaxStateBytes bound a job's input and result
	// (1 MiB each) and the state that is saved (256 KiB). At most 64 MiB are allowed.
	// A job whose result is larger fails.
	MaxInputBytes  int
	MaxResultBytes int
	MaxStateBytes  int

	// Hooks are called by the workers: see Hooks.
	Hooks Hooks

	// Logger gets errors and failed tries. It gets only the type of a function's own error,
	// since the text may have the owner's data: Job.Error has it, and Hooks.Ended gets it. The
	// default is slog.Default.
	Logger *slog.Logger

	// Now is the clock for the times in ids, and for the end of a lease while the
	// database does not answer. The default is time.Now.
	Now func() time.Time

	// Chance draws numbers in [0,1) for the jitter. The default is rand.Float64.
	Chance func() float64
}

func (c Config[Tx]) withDefaults() Config[Tx] {
	durations := []struct {
		p *time.Duration
		d time.Duration
	}{{&c.Lease, defaultLease}, {&c.Poll, defaultPoll}, {&c.DrainTimeout, defaultDrainTimeout}, {&c.Retention, defaultRetention}}
	for _, d := range durations {
		if *d.p == 0 {
			*d.p = d.d
		}
	}
	sizes := []struct {
		p *int
		n int
	}{{&c.MaxInputBytes, defaultMaxInput}, {&c.MaxResultBytes, defaultMaxResult}, {&c.MaxStateBytes, defaultMaxState}}
	for _, s := range sizes {
		if *s.p == 0 {
			*s.p = s.n
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Chance == nil {
		c.Chance = rand.Float64
	}
	return c
}

func (c *Config[Tx]) problems() (errs []error) {
	if c.Lease < minLease {
		errs = append(errs, fmt.Errorf("jobs: Config.Lease is %v: it must be at least %v, or 0 for %v", c.Lease, minLease, defaultLease))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		dflt  time.Duration
	}{{"Poll", c.Poll, defaultPoll}, {"DrainTimeout", c.DrainTimeout, defaultDrainTimeout}, {"Retention", c.Retention, defaultRetention}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("jobs: Config.%s is %v: it must be positive, or 0 for %v", d.name, d.value, d.dflt))
		}
	}
	for _, s := range []struct {
		name  string
		value int
		dflt  int
	}{{"MaxInputBytes", c.MaxInputBytes, defaultMaxInput}, {"MaxResultBytes", c.MaxResultBytes, defaultMaxResult}, {"MaxStateBytes", c.MaxStateBytes, defaultMaxState}} {
		if s.value < 0 || s.value > maxBytes {
			errs = append(errs, fmt.Errorf("jobs: Config.%s is %d: it must be from 1 to %d, or 0 for %d", s.name, s.value, maxBytes, s.dflt))
		}
	}
	return errs
}
