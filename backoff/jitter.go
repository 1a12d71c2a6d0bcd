package backoff

import (
	"fmt"
	"math"
	"time"
)

const referenceFraction = 0.2

type jitterKind uint8

const (
	jitterReference jitterKind = iota // the zero Jitter
	jitterNone
	jitterFull
	jitterEqual
	jitterProportional
)

// Jitter spreads delays, so that deliveries that failed together do not return together.
// The names Full and Equal, and their formulas, are those of Marc Brooker, "Exponential
// Backoff And Jitter", AWS Architecture Blog, 2015,
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. The zero
// value is Proportional(0.2).
type Jitter struct {
	kind     jitterKind
	fraction float64
}

// None leaves the delay as it is.
func None() Jitter { return Jitter{kind: jitterNone} }

// Full draws from [0, d). It spreads best, and may return almost at once.
func Full() Jitter { return Jitter{kind: jitterFull} }

// Equal draws from [d/2, d): half of the delay is certain.
func Equal() Jitter { return Jitter{kind: jitterEqual} }

// Proportional draws from [d-f·d, d+f·d), around the delay. The fraction must be
// from 0 to 1: Policy.Validate refuses others, and Apply takes one outside as the
// nearest inside and NaN as 0.
func Proportional(fraction float64) Jitter {
	if math.IsNaN(fraction) {
		// A NaN would make the value unequal to itself. -1 is refused and taken as 0,
		// too.
		fraction = -1
	}
	return Jitter{kind: jitterProportional, fraction: fraction}
}

// Apply returns the delay d with jitter, for a chance in [0,1). A chance outside is taken
// as the nearest inside, NaN as the one that waits longest. The result is never negative,
// never overflows, and does not fall as d or chance rises. For a negative d it is 0.
func (j Jitter) Apply(d time.Duration, chance float64) time.Duration {
	d = max(d, 0)
	chance = clampChance(chance)
	switch j.kind {
	case jitterNone:
		return d
	case jitterFull:
		return time.Duration(float64(d) * chance)
	case jitterEqual:
		return d/2 + time.Duration(float64(d/2)*chance)
	case jitterProportional:
		return proportional(d, min(max(j.fraction, 0), 1), chance)
	default:
		return proportional(d, referenceFraction, chance)
	}
}

func proportional(d time.Duration, fraction, chance float64) time.Duration {
	if fraction == 0 {
		return d // exactly, also beyond 2^53 ns
	}
	f := float64(d) * (1 - fraction + 2*fraction*chance)
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(f)
}

func clampChance(c float64) float64 {
	if !(c < 1) { // NaN too
		return math.Nextafter(1, 0)
	}
	return max(c, 0)
}

func (j Jitter) validate() error {
	if !(j.fraction >= 0 && j.fraction <= 1) { // the other kinds have 0
		return fmt.Errorf("backoff: the fraction of the proportional jitter is %v: it must be from 0 to 1", j.fraction)
	}
	return nil
}
