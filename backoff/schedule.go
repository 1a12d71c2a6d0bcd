package backoff

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Schedule gives the delay after each attempt, before jitter.
//
// Delay returns how long to wait after attempt number attempt, from 1. It must be a
// function of that number alone, must not be negative, and must be safe for concurrent
// use. The schedules of this package accept any number, and take one below 1 as 1.
type Schedule interface {
	Delay(attempt int) time.Duration
}

// referenceSchedule is never written to.
var referenceSchedule Schedule = &fixed{
	time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour,
}

// fixed is used through a pointer, so that policies stay comparable.
type fixed []time.Duration

// Fixed returns the schedule with these delays, the last of which repeats. None
// may be negative, and the last must be positive, because repeating no delay
// would be a busy loop up to the horizon. The delays need not rise; where they
// do, Delay does not fall as the attempt number rises.
func Fixed(delays ...time.Duration) (Schedule, error) {
	if len(delays) == 0 {
		return nil, errors.New("backoff: the fixed schedule is empty: give at least one delay")
	}
	var errs []error
	for i, d := range delays {
		if d < 0 {
			errs = append(errs, fmt.Errorf("backoff: delay %d of the fixed schedule is %v: it must not be negative", i+1, d))
		}
	}
	if delays[len(delays)-1] == 0 {
		errs = append(errs, errors.New("backoff: the last delay of the fixed schedule is 0: it repeats, so it must be positive"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	f := fixed(slices.Clone(delays))
	return &f, nil
}

// Delay returns the delay after the attempt, or the last delay if there are fewer.
func (f *fixed) Delay(attempt int) time.Duration {
	return (*f)[min(max(attempt, 1), len(*f))-1]
}

// Defaults of Exponential.
const (
	exponentialBase   = time.Minute
	exponentialFactor = 2
	exponentialMax    = 12 * time.Hour
)

// Exponential is a Schedule whose delays grow by a factor up to a cap:
// min(Max, Base·Factor^(attempt-1)). A zero field means its default; in Delay so
// does one that Validate refuses.
//
// The delay is the same or longer with each attempt, and stays at Max once it is there.
// (With a Factor that is within a millionth of 1, rounding may break this.)
type Exponential struct {
	Base   time.Duration // after the first attempt; default 1 min
	Factor float64       // at least 1; default 2
	Max    time.Duration // at least Base; default 12 h, or Base if that is longer
}

// Delay returns the delay after the attempt. It does not overflow at any attempt
// number.
func (e Exponential) Delay(attempt int) time.Duration {
	e = e.withDefaults()
	d := float64(e.Base) * math.Pow(e.Factor, float64(max(attempt, 1)-1))
	if !(d < float64(e.Max)) {
		return e.Max
	}
	return time.Duration(d)
}

func (e Exponential) withDefaults() Exponential {
	if e.Base <= 0 {
		e.Base = exponentialBase
	}
	if !validFactor(e.Factor) {
		e.Factor = exponentialFactor
	}
	if e.Max <= 0 {
		e.Max = max(exponentialMax, e.Base)
	}
	return e
}

// Validate reports everything that is wrong with the schedule, joined, or nil.
func (e Exponential) Validate() error {
	var errs []error
	if e.Base < 0 {
		errs = append(errs, fmt.Errorf("backoff: the base of the exponential schedule is %v: it must be positive, or zero for %v", e.Base, exponentialBase))
	}
	if e.Factor != 0 && !validFactor(e.Factor) {
		errs = append(errs, fmt.Errorf("backoff: the factor of the exponential schedule is %v: it must be a finite number of at least 1, or zero for %v", e.Factor, exponentialFactor))
	}
	if e.Max < 0 || e.Max > 0 && e.Max < e.withDefaults().Base {
		errs = append(errs, fmt.Errorf("backoff: the cap of the exponential schedule is %v: it must be at least the base, %v, or zero for %v", e.Max, e.withDefaults().Base, exponentialMax))
	}
	return errors.Join(errs...)
}

func validFactor(f float64) bool { return f >= 1 && !math.IsInf(f, 1) }
