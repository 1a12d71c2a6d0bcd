package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
)

// delayFunc is a schedule of the test's own.
type delayFunc func(attempt int) time.Duration

func (f delayFunc) Delay(attempt int) time.Duration { return f(attempt) }

func fixed(t *testing.T, delays ...time.Duration) backoff.Schedule {
	t.Helper()
	s, err := backoff.Fixed(delays...)
	require.NoError(t, err)
	return s
}

func TestNext(t *testing.T) {
	t.Parallel()
	plain := backoff.Policy{
		Schedule:      fixed(t, time.Minute, time.Hour),
		Jitter:        backoff.None(),
		Horizon:       10 * time.Hour,
		MaxRetryAfter: 3 * time.Hour,
	}
	tests := map[string]struct {
		state backoff.State
		delay time.Duration
		retry bool
	}{
		"first failure":                   {backoff.State{Attempt: 1}, time.Minute, true},
		"second failure":                  {backoff.State{Attempt: 2, Age: time.Minute}, time.Hour, true},
		"the last delay repeats":          {backoff.State{Attempt: 5, Age: 4 * time.Hour}, time.Hour, true},
		"attempt 0 counts as 1":           {backoff.State{}, time.Minute, true},
		"negative attempt counts as 1":    {backoff.State{Attempt: math.MinInt}, time.Minute, true},
		"largest attempt":                 {backoff.State{Attempt: math.MaxInt}, time.Hour, true},
		"negative age counts as 0":        {backoff.State{Attempt: 2, Age: -time.Hour}, time.Hour, true},
		"smallest age":                    {backoff.State{Attempt: 2, Age: math.MinInt64}, time.Hour, true},
		"shortened to the horizon":        {backoff.State{Attempt: 9, Age: 9*time.Hour + 30*time.Minute}, 30 * time.Minute, true},
		"a nanosecond left":               {backoff.State{Attempt: 9, Age: 10*time.Hour - 1}, 1, true},
		"at the horizon":                  {backoff.State{Attempt: 9, Age: 10 * time.Hour}, 0, false},
		"beyond the horizon":              {backoff.State{Attempt: 1, Age: math.MaxInt64}, 0, false},
		"retry after lengthens":           {backoff.State{Attempt: 1, RetryAfter: 2 * time.Minute}, 2 * time.Minute, true},
		"retry after never shortens":      {backoff.State{Attempt: 2, RetryAfter: time.Second}, time.Hour, true},
		"retry after is clamped":          {backoff.State{Attempt: 1, RetryAfter: 4 * time.Hour}, 3 * time.Hour, true},
		"largest retry after":             {backoff.State{Attempt: 1, RetryAfter: math.MaxInt64}, 3 * time.Hour, true},
		"retry after up to the horizon":   {backoff.State{Attempt: 1, Age: 9 * time.Hour, RetryAfter: 2 * time.Hour}, time.Hour, true},
		"negative retry after":            {backoff.State{Attempt: 1, RetryAfter: math.MinInt64}, time.Minute, true},
		"clamp does not shorten schedule": {backoff.State{Attempt: 2, RetryAfter: 1}, time.Hour, true},
		"interrupted does not wait":       {backoff.State{Attempt: 2, Age: time.Hour, Outcome: backoff.Interrupted}, 0, true},
		"interrupted ignores retry after": {backoff.State{Attempt: 2, Outcome: backoff.Interrupted, RetryAfter: time.Hour}, 0, true},
		"interrupted at the horizon":      {backoff.State{Attempt: 2, Age: 10 * time.Hour, Outcome: backoff.Interrupted}, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			delay, retry := plain.Next(tt.state, 0.5)
			require.Equal(t, tt.retry, retry)
			require.Equal(t, tt.delay, delay)
		})
	}
}

func TestNextJitterComesBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	p := backoff.Policy{Schedule: fixed(t, time.Hour), Jitter: backoff.Full()}
	delay, retry := p.Next(backoff.State{Attempt: 1, RetryAfter: 50 * time.Minute}, 0)
	require.True(t, retry)
	require.Equal(t, 50*time.Minute, delay, "jitter must not bring an attempt before its Retry-After")
}

func TestZeroPolicyIsTheReference(t *testing.T) {
	t.Parallel()
	require.Equal(t, backoff.Reference(), backoff.Policy{}.WithDefaults())
	require.Equal(t, backoff.Reference(), backoff.Reference().WithDefaults())
	require.Equal(t, backoff.Reference(), backoff.Policy{Horizon: -1, MaxRetryAfter: math.MinInt64}.WithDefaults())
	require.NoError(t, backoff.Policy{}.Validate())
	require.NoError(t, backoff.Reference().Validate())
	require.True(t, backoff.Policy{} != backoff.Reference(), "policies can be compared")

	for attempt, want := range []time.Duration{time.Minute, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour, 12 * time.Hour} {
		delay, retry := backoff.Policy{}.Next(backoff.State{Attempt: attempt}, 0.5)
		require.True(t, retry)
		require.Equal(t, want, delay, "attempt %d", attempt)
	}
	low, _ := backoff.Policy{}.Next(backoff.State{Attempt: 1}, 0)
	high, _ := backoff.Policy{}.Next(backoff.State{Attempt: 1}, 1)
	require.Equal(t, 48*time.Second, low)
	require.InDelta(t, 72*time.Second, high, 2)
	_, retry := backoff.Policy{}.Next(backoff.State{Attempt: 1, Age: 72 * time.Hour}, 0)
	require.False(t, retry)
	delay, _ := backoff.Policy{}.Next(backoff.State{Attempt: 1, RetryAfter: 25 * time.Hour}, 0)
	require.Equal(t, 24*time.Hour, delay)
}

func TestChanceOutsideIsClamped(t *testing.T) {
	t.Parallel()
	jitters := map[string]backoff.Jitter{
		"reference": {}, "none": backoff.None(), "full": backoff.Full(),
		"equal": backoff.Equal(), "proportional": backoff.Proportional(1),
	}
	const d = 12 * time.Hour
	last := math.Nextafter(1, 0)
	for name, j := range jitters {
		for _, c := range []float64{-1, math.Inf(-1), math.Copysign(0, -1), -math.SmallestNonzeroFloat64} {
			require.Equal(t, j.Apply(d, 0), j.Apply(d, c), "%s, chance %v", name, c)
		}
		for _, c := range []float64{1, 2, math.Inf(1), math.MaxFloat64, math.NaN()} {
			require.Equal(t, j.Apply(d, last), j.Apply(d, c), "%s, chance %v", name, c)
		}
	}
}

// run makes attempts that all fail after taking a while, until one is final.
func run(t *testing.T, p backoff.Policy, took func() time.Duration, chance func() float64) (attempts int, lastBegan time.Duration) {
	t.Helper()
	var age time.Duration
	for attempts = 1; ; attempts++ {
		require.Less(t, attempts, 100_000)
		lastBegan = age
		age += took()
		delay, retry := p.Next(backoff.State{Attempt: attempts, Age: age}, chance())
		if !retry {
			return attempts, lastBegan
		}
		age += delay
	}
}

func TestReferenceAttempts(t *testing.T) {
	t.Parallel()
	at := func(c float64) func() float64 { return func() float64 { return c } }
	none := func() time.Duration { return 0 }
	for chance, want := range map[float64]int{0: 13, 0.5: 11, 1: 10} {
		attempts, last := run(t, backoff.Policy{}, none, at(chance))
		require.Equal(t, want, attempts, "chance %v", chance)
		require.Equal(t, 72*time.Hour, last, "the last attempt begins on the horizon")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	slow := func() time.Duration { return time.Duration(1 + rng.Int64N(int64(10*time.Second))) }
	for range 2000 {
		attempts, last := run(t, backoff.Reference(), slow, rng.Float64)
		require.GreaterOrEqual(t, attempts, 10)
		require.LessOrEqual(t, attempts, 13)
		// An attempt that begins just before the horizon and fails after it was
		// the last as well.
		require.LessOrEqual(t, last, 72*time.Hour)
		require.Greater(t, last, 72*time.Hour-10*time.Second)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	p := backoff.Policy{
		Schedule:      backoff.Exponential{Base: -1, Factor: math.NaN(), Max: -1},
		Jitter:        backoff.Proportional(1.5),
		Horizon:       -time.Hour,
		MaxRetryAfter: -time.Second,
	}
	err := p.Validate()
	for _, want := range []string{
		"the base of the exponential schedule is -1ns", "the factor of the exponential schedule is NaN",
		"the cap of the exponential schedule is -1ns", "the fraction of the proportional jitter is 1.5",
		"the horizon is -1h0m0s", "the limit to Retry-After is -1s",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, backoff.Policy{Schedule: delayFunc(func(int) time.Duration { return 1 })}.Validate())
}

func TestScheduleOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	var asked []int
	p := backoff.Policy{Jitter: backoff.None(), Schedule: delayFunc(func(attempt int) time.Duration {
		asked = append(asked, attempt)
		return -time.Hour
	})}
	for _, attempt := range []int{math.MinInt, 0, 1, 7} {
		delay, retry := p.Next(backoff.State{Attempt: attempt}, 0)
		require.True(t, retry)
		require.Zero(t, delay, "a negative delay counts as 0")
	}
	require.Equal(t, []int{1, 1, 1, 7}, asked)
}
