package rules_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender/rules"
)

const h = time.Hour

var t0 = now

func TestTakeRate(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name    string
		rate    float64
		at      time.Duration // from now
		want    int
		granted int
		next    time.Duration // from now
		again   time.Duration // from now
	}{
		{"one a second, idle", 1, -h, 5, 1, time.Second, time.Second},
		{"one a second, taken just now", 1, time.Second, 5, 0, time.Second, time.Second},
		{"one a second, taken half a second ago", 1, 500 * ms, 5, 0, 500 * ms, 500 * ms},
		{"one a second, taken a second ago", 1, 0, 5, 1, time.Second, time.Second},
		{"a hundred a second, idle: a burst of ten", 100, -h, 50, 10, 100 * ms, 10 * ms},
		{"less than is left", 100, -h, 3, 3, 30 * ms, 0},
		{"half of the burst used", 100, 50 * ms, 50, 5, 100 * ms, 10 * ms},
		{"nothing wanted", 100, -h, 0, 0, -h, 0},
		{"less than nothing", 100, -h, -1, 0, -h, 0},
		{"a third a second", 1.0 / 3, -h, 2, 1, 3 * time.Second, 3 * time.Second},
		{"seven a second, rounded up", 7, -h, 2, 1, 142858 * time.Microsecond, 142858 * time.Microsecond},
		{"no bound", 0, time.Second, 7, 7, time.Second, 0},
		{"less than nothing of no bound", 0, time.Second, -1, 0, time.Second, 0},
		{"no number", math.NaN(), time.Second, 7, 7, time.Second, 0},
		{"the rate was raised", 10, 1000 * time.Second, 5, 1, 100 * ms, 100 * ms},
		{"the clock was set back by 10 s", 1, 11 * time.Second, 5, 0, 11 * time.Second, 11 * time.Second},
		{"the clock was set back by more", 1, 11*time.Second + 1, 5, 1, time.Second, time.Second},
		{"infinite: a million", math.Inf(1), -h, math.MaxInt, 100_000, 100 * ms, time.Microsecond},
		{"next to nothing", 1e-300, -h, 5, 1, 1e6 * time.Second, 1e6 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			granted, next, again := rules.TakeRate(c.rate, t0.Add(c.at), t0, c.want)
			require.Equal(t, c.granted, granted)
			require.Equal(t, c.next, next.Sub(t0))
			require.Equal(t, c.again, again.Sub(t0))
		})
	}
	granted, next, _ := rules.TakeRate(2, time.Time{}, t0, 1)
	require.Equal(t, 1, granted, "never used before")
	require.Equal(t, t0.Add(500*time.Millisecond), next)
}

// A replay is looked at again when half of its burst is granted, so that each look is worth its
// transaction.
func TestReplayAgain(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name  string
		rate  float64
		at    time.Duration // from now
		again time.Duration // from now
	}{
		{"one a second, idle", 1, -h, 0},
		{"one a second, taken just now", 1, time.Second, time.Second},
		{"a hundred a second, idle", 100, -h, 0},
		{"one is left of the burst of ten", 100, 90 * ms, 0},
		{"none is left", 100, 100 * ms, 50 * ms},
		{"a burst of three", 30, 99_999 * time.Microsecond, 33_333 * time.Microsecond},
	} {
		again := rules.ReplayAgain(c.rate, t0.Add(c.at), t0)
		require.Equal(t, c.again, again.Sub(t0), c.name)
	}
}

// Over any window no more than rate×window + burst are granted. Over the whole time no
// fewer are granted than were asked for at the pace of the rate.
func TestTakeRateHolds(t *testing.T) {
	type grant struct {
		at time.Time
		n  int
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		rate := math.Pow(10, -3+7*r.Float64()) // 0.001 to 10000
		if seed%5 == 0 {
			rate = []float64{0.001, 1, 3, 7000, 9999, 10000}[r.IntN(6)]
		}
		burst := math.Max(1, math.Floor(rate/10))
		greedy := seed%3 == 0
		var at time.Time
		var grants []grant
		now, wait := t0, time.Time{}
		for range 400 {
			want := 1 + r.IntN(1+int(2*burst))
			granted, next, again := rules.TakeRate(rate, at, now, want)
			require.Equal(t, next, next.Truncate(time.Microsecond))
			require.LessOrEqual(t, granted, want)
			require.False(t, again.Before(now))
			if !wait.IsZero() {
				require.Positive(t, granted, "when it was said that one more is granted, it is")
			}
			if granted == 0 {
				next = at // a store need not write
			}
			if granted < want {
				require.True(t, again.After(now))
			}
			if !now.Before(again) || granted > 0 {
				wait = time.Time{}
			}
			at = next
			grants = append(grants, grant{now, granted})
			if greedy || r.IntN(3) == 0 {
				// The next one is granted then, and not a microsecond before.
				if again.After(now.Add(2 * time.Microsecond)) {
					early, _, _ := rules.TakeRate(rate, at, again.Add(-2*time.Microsecond), 1)
					require.Zero(t, early)
				}
				now, wait = again, again
				continue
			}
			now, wait = now.Add(time.Duration(r.ExpFloat64()/rate*burst*float64(time.Second))).Truncate(time.Microsecond), time.Time{}
		}
		for i := range grants {
			sum := 0
			for j := i; j < len(grants); j++ {
				sum += grants[j].n
				if most := rate*grants[j].at.Sub(grants[i].at).Seconds() + burst; float64(sum) > most+1e-6 {
					require.FailNow(t, "more than the rate", "rate %v: %d of %v", rate, sum, most)
				}
			}
		}
		if greedy {
			sum := 0
			for _, g := range grants {
				sum += g.n
			}
			took := now.Sub(t0).Seconds()
			require.GreaterOrEqual(t, float64(sum), 0.98*rate*took, "rate %v: who takes all that is granted gets the rate", rate)
		}
	}
}

// A clock that is set back costs no more than the slack and the burst.
func TestTakeRateAfterAClockThatWasSetBack(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 1000} {
		_, at, _ := rules.TakeRate(rate, time.Time{}, t0, 1000)
		for _, back := range []time.Duration{time.Millisecond, 9 * time.Second, h, 1000 * h} {
			now := t0.Add(-back)
			granted, _, again := rules.TakeRate(rate, at, now, 1)
			if granted == 0 {
				require.LessOrEqual(t, again.Sub(now), 10*time.Second+time.Duration(math.Max(1/rate, 0.1)*float64(time.Second)))
				granted, _, _ = rules.TakeRate(rate, at, again, 1)
			}
			require.Equal(t, 1, granted)
		}
	}
}

// A rate grants no more than it allows, however the time is cut into calls.
func TestPropertyRateIsNotExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.01, 200).Draw(t, "rate")
		now, at, granted := t0, time.Time{}, 0
		soonest := now
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			if rapid.Bool().Draw(t, "as soon as it may") {
				now = soonest
			} else {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			}
			want := rapid.IntRange(0, 50).Draw(t, "want")
			n, next, again := rules.TakeRate(rate, at, now, want)
			require.LessOrEqual(t, n, want)
			require.False(t, again.Before(now))
			if n < want {
				if none, _, _ := rules.TakeRate(rate, next, again.Add(-2*time.Microsecond), 1); again.Sub(now) > 2*time.Microsecond {
					require.Zero(t, none, "more was to be had before")
				}
				one, _, _ := rules.TakeRate(rate, next, again, 1)
				require.Equal(t, 1, one, "none was to be had when it was said")
			}
			granted, at, soonest = granted+n, next, again
			allowed := rate*now.Sub(t0).Seconds() + max(1, rate/10)
			require.LessOrEqual(t, float64(granted), allowed+1e-6)
		}
	})
}
