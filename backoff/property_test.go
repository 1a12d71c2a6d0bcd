package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
)

const rounds = 20_000

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// anyDuration is every kind of duration: the extremes, the usual, and any.
func anyDuration(rng *rand.Rand) time.Duration {
	return pick(rng, 0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt64-1, 1<<53+1,
		time.Duration(rng.Int64N(int64(80*time.Hour))),
		time.Duration(rng.Int64N(int64(time.Minute))),
		time.Duration(rng.Uint64()))
}

func anyFloat(rng *rand.Rand) float64 {
	return pick(rng, 0, 1, -1, 0.5, 1.5, 2, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Nextafter(1, 2), math.Nextafter(1, 0),
		rng.Float64(), 1+rng.Float64(), rng.NormFloat64(), math.Float64frombits(rng.Uint64()))
}

func anyInt(rng *rand.Rand) int {
	return pick(rng, math.MaxInt, math.MaxInt-1, math.MinInt, 0, -1, 1, 2, rng.IntN(100), int(rng.Uint64()))
}

func anyExponential(rng *rand.Rand) backoff.Exponential {
	return backoff.Exponential{Base: anyDuration(rng), Factor: anyFloat(rng), Max: anyDuration(rng)}
}

func anySchedule(t *testing.T, rng *rand.Rand) backoff.Schedule {
	d := anyDuration(rng)
	return pick[backoff.Schedule](rng, nil, anyExponential(rng),
		fixed(t, time.Second, 0, time.Hour), fixed(t, math.MaxInt64),
		delayFunc(func(int) time.Duration { return d }))
}

func anyJitter(rng *rand.Rand) backoff.Jitter {
	return pick(rng, backoff.Jitter{}, backoff.None(), backoff.Full(), backoff.Equal(), backoff.Proportional(anyFloat(rng)))
}

func anyPolicy(t *testing.T, rng *rand.Rand) backoff.Policy {
	return backoff.Policy{Schedule: anySchedule(t, rng), Jitter: anyJitter(rng), Horizon: anyDuration(rng), MaxRetryAfter: anyDuration(rng)}
}

func TestNextStaysWithinTheHorizonWhateverItIsGiven(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 1))
	for range rounds {
		p := anyPolicy(t, rng)
		s := backoff.State{Attempt: anyInt(rng), Age: anyDuration(rng), Outcome: backoff.Outcome(rng.IntN(4) - 1), RetryAfter: anyDuration(rng)}
		horizon := p.WithDefaults().Horizon
		delay, retry := p.Next(s, anyFloat(rng))
		require.Equal(t, s.Age < horizon, retry, "%+v %+v", p, s)
		require.GreaterOrEqual(t, delay, time.Duration(0), "%+v %+v", p, s)
		if retry {
			require.LessOrEqual(t, delay, horizon-max(s.Age, 0), "%+v %+v", p, s)
		} else {
			require.Zero(t, delay)
		}
	}
}

func TestNextDoesNotFallAsRetryAfterRises(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 2))
	for range rounds {
		p, chance := anyPolicy(t, rng), anyFloat(rng)
		s := backoff.State{Attempt: anyInt(rng), Age: anyDuration(rng)}
		without, _ := p.Next(s, chance)
		s.RetryAfter = anyDuration(rng)
		less, _ := p.Next(s, chance)
		require.GreaterOrEqual(t, less, without, "Retry-After shortened a delay: %+v %+v", p, s)
		s.RetryAfter = max(s.RetryAfter, anyDuration(rng))
		more, _ := p.Next(s, chance)
		require.GreaterOrEqual(t, more, less, "%+v %+v", p, s)
	}
}

func TestJitterDoesNotFallAsDelayOrChanceRises(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	for range rounds {
		j := anyJitter(rng)
		d1, d2 := anyDuration(rng), anyDuration(rng)
		if d1 > d2 {
			d1, d2 = d2, d1
		}
		c1, c2 := pick(rng, rng.Float64(), anyFloat(rng)), rng.Float64()
		if math.IsNaN(c1) {
			c1 = 1
		}
		if c1 > c2 {
			c1, c2 = c2, c1
		}
		got := j.Apply(d1, c1)
		require.GreaterOrEqual(t, got, time.Duration(0))
		require.LessOrEqual(t, backoff.Full().Apply(d1, c1), max(d1, 0))
		require.LessOrEqual(t, backoff.Equal().Apply(d1, c1), max(d1, 0))
		require.LessOrEqual(t, got, j.Apply(d2, c1), "%+v %d %d chance %v", j, d1, d2, c1)
		require.LessOrEqual(t, got, j.Apply(d1, c2), "%+v %d chance %v %v", j, d1, c1, c2)
	}
}

func TestExponentialRisesToItsCapAndStays(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range rounds {
		e := anyExponential(rng)
		if e.Factor > 1 && e.Factor < 1+1e-6 {
			continue // its steps are finer than a float64 tells
		}
		a, b := anyInt(rng), anyInt(rng)
		if a > b {
			a, b = b, a
		}
		require.GreaterOrEqual(t, e.Delay(a), time.Duration(0), "%+v", e)
		require.LessOrEqual(t, e.Delay(a), e.Delay(b), "%+v attempts %d %d", e, a, b)
		if e.Max > 0 {
			require.LessOrEqual(t, e.Delay(b), e.Max, "%+v", e)
		}
		n := rng.IntN(1000)
		require.LessOrEqual(t, e.Delay(n), e.Delay(n+1), "%+v attempt %d", e, n)
	}
}

func TestLastAttemptIsOnTheHorizonWhateverThePolicy(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	none := func() time.Duration { return 0 }
	for range 500 {
		p := anyPolicy(t, rng)
		p.Schedule = pick[backoff.Schedule](rng, nil,
			backoff.Exponential{Base: time.Duration(1 + rng.Int64N(int64(time.Hour))), Factor: 1 + rng.Float64()},
			fixed(t, 0, time.Minute, time.Hour))
		p.Jitter = pick(rng, backoff.Jitter{}, backoff.None(), backoff.Full(), backoff.Equal(), backoff.Proportional(rng.Float64()/2))
		p.Horizon = time.Minute + time.Duration(rng.Int64N(int64(72*time.Hour)))
		_, last := run(t, p, none, rng.Float64)
		require.Equal(t, p.Horizon, last)
	}
}
