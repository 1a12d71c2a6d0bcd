package backoff

import (
	"errors"
	"fmt"
	"time"
)

const (
	referenceHorizon       = 72 * time.Hour
	referenceMaxRetryAfter = 24 * time.Hour
)

// Outcome says how an attempt failed.
type Outcome int

const (
	// Failed: the endpoint refused, asked for fewer requests, broke off or did not answer in
	// time.
	Failed Outcome = iota
	// Interrupted: the process that made the attempt was lost. The endpoint is
	// not known to be at fault, so the next attempt does not wait.
	Interrupted
)

// State has the facts that a delivery's row remembers when an attempt has failed.
type State struct {
	// Attempt is the number of the attempt that just failed, from 1. A smaller
	// one counts as 1.
	Attempt int
	// Age is the time from the beginning of the first attempt until now. A
	// negative one, as from a clock that was set back, counts as 0.
	Age time.Duration
	// Outcome is how the attempt failed.
	Outcome Outcome
	// RetryAfter is what the answer asked for, as from ParseRetryAfter; 0 if it
	// asked for nothing.
	RetryAfter time.Duration
}

// Policy says when a failed delivery is tried again. A zero field means the value of
// Reference. So does a negative duration, which Validate refuses.
type Policy struct {
	// Schedule gives the delay after each attempt.
	Schedule Schedule
	// Jitter spreads the delays. Choose None() for none.
	Jitter Jitter
	// Horizon is the age beyond which no attempt is made. A delay that would
	// cross it is shortened so that the last attempt begins exactly there, and
	// the failure of that attempt is final.
	Horizon time.Duration
	// MaxRetryAfter is the longest Retry-After that is followed.
	MaxRetryAfter time.Duration
}

// Reference returns the policy that a zero Policy stands for: delays of 1 min, 5 min, 30
// min, 2 h and 12 h, the last one repeated. Delays are varied by up to a fifth either
// way. The horizon is 72 h. A Retry-After is followed for up to 24 h.
//
// Without jitter, an endpoint that always fails at once is tried 11 times: at 0, 1 min, 6
// min, 36 min, 2 h 36 min, then every 12 h, and at 72 h. With jitter it is tried 10 to 13
// times.
func Reference() Policy {
	return Policy{
		Schedule:      referenceSchedule,
		Jitter:        Proportional(referenceFraction),
		Horizon:       referenceHorizon,
		MaxRetryAfter: referenceMaxRetryAfter,
	}
}

// WithDefaults returns the policy with every field in force: zero fields, and
// durations below zero, replaced by those of Reference.
func (p Policy) WithDefaults() Policy {
	if p.Schedule == nil {
		p.Schedule = referenceSchedule
	}
	if p.Jitter == (Jitter{}) {
		p.Jitter = Proportional(referenceFraction)
	}
	if p.Horizon <= 0 {
		p.Horizon = referenceHorizon
	}
	if p.MaxRetryAfter <= 0 {
		p.MaxRetryAfter = referenceMaxRetryAfter
	}
	return p
}

// Next returns how long from now the next attempt is to wait, or false if the failure was
// final. chance is a number in [0,1) that the caller draws, who thereby decides what is
// random and what can be repeated. A number outside is taken as the nearest one inside,
// and NaN as the one that waits longest.
//
// A delivery whose age has reached the horizon is given up after every outcome. After
// Interrupted the delay is 0. Otherwise it is the schedule's, with jitter. RetryAfter
// lengthens it and never shortens it. At most MaxRetryAfter of it counts. Then it is
// shortened to the rest of the horizon.
//
// The delay is never negative, and the age plus the delay never exceeds the
// horizon. With all else equal it does not fall as RetryAfter or chance rises. As
// the attempt number rises it does not fall either where the schedule does not
// and chance is the same. No input overflows.
func (p Policy) Next(s State, chance float64) (delay time.Duration, retry bool) {
	p = p.WithDefaults()
	left := p.Horizon - max(s.Age, 0)
	if left <= 0 {
		return 0, false
	}
	if s.Outcome == Interrupted {
		return 0, true
	}
	delay = p.Jitter.Apply(p.Schedule.Delay(max(s.Attempt, 1)), chance)
	delay = max(delay, min(s.RetryAfter, p.MaxRetryAfter))
	return min(delay, left), true
}

// Validate reports everything that is wrong with the policy, joined, or nil. Zero
// fields are right. A Schedule that has a method Validate() error is asked too.
func (p Policy) Validate() error {
	var errs []error
	if v, ok := p.Schedule.(interface{ Validate() error }); ok {
		errs = append(errs, v.Validate())
	}
	errs = append(errs, p.Jitter.validate())
	if p.Horizon < 0 {
		errs = append(errs, fmt.Errorf("backoff: the horizon is %v: it must be positive, or zero for %v", p.Horizon, referenceHorizon))
	}
	if p.MaxRetryAfter < 0 {
		errs = append(errs, fmt.Errorf("backoff: the limit to Retry-After is %v: it must be positive, or zero for %v", p.MaxRetryAfter, referenceMaxRetryAfter))
	}
	return errors.Join(errs...)
}
