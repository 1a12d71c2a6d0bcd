package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/ident"
)

const (
	defaultConcurrency = 4
	defaultMaxTries    = 5
	maxConcurrency     = 1000

	retryBase = time.Second
	retryMax  = 5 * time.Minute
)

// Kind is a kind of job. Zero fields mean the defaults.
type Kind[Tx any] struct {
	// Name has the form of an event's type: words of letters, digits, hyphens and
	// underscores, joined by full stops.
	Name string

	// Run does the work of a job. Many goroutines call it at once. It returns the
	// result, a JSON value or nil, or an error. After an error the job is run again
	// later, unless the error is Permanent or MaxTries is reached. The job's owner
	// can read the error's text. A panic counts as an error.
	//
	// ctx ends when the job is cancelled, the try takes too long, the lease is lost
	// or the workers stop; context.Cause says which. Run should return soon then.
	// run.State is the state that was saved last, also by a run that was lost in a
	// crash.
	Run func(ctx context.Context, run *Run[Tx]) (json.RawMessage, error)

	// Check refuses an input when it is submitted. The submitter gets its error's
	// text. Nil: every JSON value is accepted.
	Check func(input json.RawMessage) error

	// Concurrency is how many jobs of this kind one process runs at once. The default
	// is 4.
	Concurrency int

	// OwnerConcurrency is how many jobs of one owner, of this kind, one process runs at
	// once. The owners whose jobs wait take turns: an owner with many jobs has another one
	// begun when each of the others has had one begun. Jobs that have no owner count as
	// those of one. Zero: Concurrency is the only bound, and the jobs that are due longest
	// are begun first, whoever owns them.
	OwnerConcurrency int

	// Timeout bounds a try. Zero: it is not bounded.
	Timeout time.Duration

	// MaxTries is how often a job is begun without progress before it fails. It
	// makes progress when it saves a state that differs from the one before. A try
	// that ended with its process counts; one that ended because the workers were
	// stopped does not. The default is 5.
	MaxTries int

	// Schedule gives the delay after each failed try, and Jitter spreads it. The
	// defaults are 1 s, doubling up to 5 min, and backoff.Proportional(0.2). After
	// a try that ended with its process, the next one begins when the lease is
	// over.
	Schedule backoff.Schedule
	Jitter   backoff.Jitter
}

func (k Kind[Tx]) withDefaults() Kind[Tx] {
	if k.Concurrency == 0 {
		k.Concurrency = defaultConcurrency
	}
	if k.MaxTries == 0 {
		k.MaxTries = defaultMaxTries
	}
	if k.Schedule == nil {
		k.Schedule = backoff.Exponential{Base: retryBase, Max: retryMax}
	}
	return k
}

func (k *Kind[Tx]) rules() rules {
	return rules{maxTries: k.MaxTries, retry: backoff.Policy{Schedule: k.Schedule, Jitter: k.Jitter}}
}

func (k *Kind[Tx]) problems() (errs []error) {
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("jobs: kind %q: "+format, append([]any{k.Name}, args...)...))
	}
	if err := ident.Type(k.Name); err != nil {
		add("its name is not of the form of an event's type: %w", err)
	}
	if k.Run == nil {
		add("Run is nil: give the function that does its work")
	}
	if k.Concurrency < 0 || k.Concurrency > maxConcurrency {
		add("Concurrency is %d: it must be from 1 to %d, or 0 for %d", k.Concurrency, maxConcurrency, defaultConcurrency)
	}
	if k.OwnerConcurrency < 0 {
		add("OwnerConcurrency is %d: it must be positive, or 0 for no bound beside Concurrency", k.OwnerConcurrency)
	}
	if k.Timeout < 0 {
		add("Timeout is %v: it must be positive, or 0 for none", k.Timeout)
	}
	if k.MaxTries < 0 {
		add("MaxTries is %d: it must be positive, or 0 for %d", k.MaxTries, defaultMaxTries)
	}
	if err := k.rules().retry.Validate(); err != nil {
		add("%w", err)
	}
	return errs
}

func checkKinds[Tx any](kinds []Kind[Tx]) (map[string]*Kind[Tx], error) {
	all := map[string]*Kind[Tx]{}
	var errs []error
	for _, k := range kinds {
		k = k.withDefaults()
		errs = append(errs, k.problems()...)
		if all[k.Name] != nil {
			errs = append(errs, fmt.Errorf("jobs: kind %q is given twice", k.Name))
		}
		all[k.Name] = &k
	}
	return all, errors.Join(errs...)
}
