package dispatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestPolicyDelivery(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}}
	failed := dispatch.Result{Class: sender.ClassStatus, StatusCode: 500}
	for _, c := range []struct {
		name   string
		live   dispatch.Live
		result dispatch.Result
		after  time.Duration
		status sender.Status
		delay  time.Duration
	}{
		{"success", dispatch.Live{Tries: 1}, dispatch.Result{}, 0, sender.StatusDelivered, 0},
		{"first failure", dispatch.Live{Tries: 1}, failed, 0, sender.StatusAwaitingRetry, time.Minute},
		{"second failure", dispatch.Live{Tries: 2}, failed, time.Minute, sender.StatusAwaitingRetry, 5 * time.Minute},
		{"a restarted schedule counts its own tries", dispatch.Live{Number: 11, Tries: 1}, failed, 0, sender.StatusAwaitingRetry, time.Minute},
		{"the last delay ends at the horizon", dispatch.Live{Tries: 9}, failed, 70 * time.Hour, sender.StatusAwaitingRetry, 2 * time.Hour},
		{"a failure at the horizon is final", dispatch.Live{Tries: 11}, failed, 72 * time.Hour, sender.StatusDeadLettered, 0},
		{"a held object has tries left", dispatch.Live{Tries: 2, HoldTries: 3}, failed, 0, sender.StatusAwaitingRetry, 5 * time.Minute},
		{"and none left", dispatch.Live{Tries: 3, HoldTries: 3}, failed, 0, sender.StatusDeadLettered, 0},
		{"an interrupted one is one of them", dispatch.Live{Tries: 3, HoldTries: 3}, dispatch.Result{Class: sender.ClassInterrupted}, 0, sender.StatusDeadLettered, 0},
		{"a held object has time left", dispatch.Live{Tries: 2, HoldFor: 3 * time.Minute}, failed, time.Minute, sender.StatusAwaitingRetry, 2 * time.Minute},
		{"and no time left", dispatch.Live{Tries: 2, HoldFor: 3 * time.Minute}, failed, 3 * time.Minute, sender.StatusDeadLettered, 0},
		{"it was put off for weeks", dispatch.Live{Tries: 2, Stood: 1000 * time.Hour}, failed, 216 * time.Hour, sender.StatusDeadLettered, 0},
		{"time that stood still does not count", dispatch.Live{Tries: 1, HoldFor: 3 * time.Minute, Stood: time.Hour}, failed, time.Hour, sender.StatusAwaitingRetry, time.Minute},
		{"it is never held beyond the horizon", dispatch.Live{Tries: 2, HoldFor: 100 * time.Hour}, failed, 72 * time.Hour, sender.StatusDeadLettered, 0},
		{"Retry-After lengthens", dispatch.Live{Tries: 1}, dispatch.Result{Class: sender.ClassStatus, StatusCode: 503, RetryAfter: time.Hour}, 0, sender.StatusAwaitingRetry, time.Hour},
		{"Retry-After never shortens", dispatch.Live{Tries: 2}, dispatch.Result{Class: sender.ClassStatus, StatusCode: 429, RetryAfter: time.Second}, 0, sender.StatusAwaitingRetry, 5 * time.Minute},
		{"an interrupted attempt is made again at once", dispatch.Live{Tries: 3}, dispatch.Result{Class: sender.ClassInterrupted}, time.Hour, sender.StatusAwaitingRetry, 0},
		{"but not beyond the horizon", dispatch.Live{Tries: 3}, dispatch.Result{Class: sender.ClassInterrupted}, 73 * time.Hour, sender.StatusDeadLettered, 0},
		{"a single attempt that fails leaves it delivered", dispatch.Live{Tries: 1, Single: true}, failed, 0, sender.StatusDelivered, 0},
		{"a single attempt that is lost is made again at once", dispatch.Live{Tries: 1, HoldTries: 1, Single: true}, dispatch.Result{Class: sender.ClassInterrupted}, 0, sender.StatusAwaitingRetry, 0},
		{"but not beyond the horizon: it stays delivered", dispatch.Live{Tries: 9, Single: true}, dispatch.Result{Class: sender.ClassInterrupted}, 73 * time.Hour, sender.StatusDelivered, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.live.First = t0
			now := t0.Add(c.after)
			d := p.Decide(c.live, sender.Health{}, c.result, now)
			require.Equal(t, c.status, d.Status)
			if c.status == sender.StatusAwaitingRetry {
				require.Equal(t, c.delay, d.Due.Sub(now))
			}
		})
	}
}

// A server that closes an idle connection as it is used costs a second, once, and nothing
// else.
func TestPolicyClosedIdle(t *testing.T) {
	p := dispatch.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}}
	before := sender.Health{Lane: sender.LaneProven, Streak: 4, FailingSince: t0.Add(-119 * h), LastFailure: t0.Add(-h), Warned: 75}
	closed := dispatch.Result{Class: sender.ClassReset, ClosedIdle: true, StartedAt: t0.Add(-10 * time.Second), Duration: 10 * time.Second}
	for _, c := range []struct {
		name string
		live dispatch.Live
	}{
		{"the first", dispatch.Live{First: closed.StartedAt, Tries: 1}},
		{"a later one", dispatch.Live{First: t0.Add(-h), Tries: 4}},
		{"the last one", dispatch.Live{First: t0.Add(-73 * h), Tries: 11}},
		{"it has stood for as long as it may", dispatch.Live{First: t0.Add(-217 * h), Tries: 11, Stood: 144 * h}},
		{"of a notice", dispatch.Live{First: t0.Add(-h), Tries: 4, Notice: true}},
		{"of one that was delivered before", dispatch.Live{First: closed.StartedAt, Tries: 1, Single: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for chance, delay := range map[float64]time.Duration{0: 800 * time.Millisecond, 0.5: time.Second, 0.75: 1100 * time.Millisecond} {
				r := closed
				r.Chance = chance
				require.Equal(t, dispatch.Decision{
					Status: sender.StatusAwaitingRetry, Due: t0.Add(delay), Health: before, Spared: true, Uncounted: true, Stands: 10*time.Second + delay,
				}, p.Decide(c.live, before, r, t0))
			}
		})
		t.Run(c.name+", and the one before", func(t *testing.T) {
			c.live.Spared = true
			broken := closed
			broken.ClosedIdle = false
			counted := p.Decide(c.live, before, closed, t0)
			require.Equal(t, p.Decide(c.live, before, broken, t0), counted, "it counts as any reset does")
			require.Equal(t, 5, counted.Health.Streak)
			require.False(t, counted.Spared)
		})
	}

	for name, r := range map[string]dispatch.Result{
		"a reset on a new connection": {Class: sender.ClassReset},
		"an answer that broke off":    {Class: sender.ClassStatus, StatusCode: 500, ClosedIdle: true},
		"a success":                   {ClosedIdle: true},
		"a lost attempt":              {Class: sender.ClassInterrupted, ClosedIdle: true},
	} {
		for _, again := range []bool{false, true} {
			d := p.Decide(dispatch.Live{First: t0, Tries: 1, Spared: again}, before, r, t0)
			require.False(t, d.Spared, "%s is not spared", name)
			require.False(t, d.Uncounted, name)
		}
	}
}

func TestPolicyHealth(t *testing.T) {
	p := dispatch.Policy{}
	decide := func(h sender.Health, r dispatch.Result, now time.Time) sender.Health {
		return p.Decide(dispatch.Live{Tries: 1, First: now}, h, r, now).Health
	}
	fast := dispatch.Result{Duration: 20 * time.Millisecond}
	slow := dispatch.Result{Duration: 9 * time.Second}
	refused := dispatch.Result{Class: sender.ClassConnect, Duration: time.Millisecond}

	h := decide(sender.Health{}, fast, t0)
	require.Equal(t, sender.Health{Lane: sender.LaneProven, LastSuccess: t0}, h)
	require.Equal(t, h, decide(h, fast, t0.Add(59*time.Second)), "a healthy subscription's row is not written with every success")
	require.Equal(t, t0.Add(time.Minute), decide(h, fast, t0.Add(time.Minute)).LastSuccess)

	require.Equal(t, sender.LaneProbation, decide(h, slow, t0).Lane, "an answer after nine seconds")
	require.Equal(t, sender.LaneProbation, decide(h, dispatch.Result{Class: sender.ClassTimeout, Duration: 10 * time.Second}, t0).Lane)

	require.Equal(t, sender.LaneProbation, decide(sender.Health{}, refused, t0).Lane, "a new one that fails at once")

	f := h
	for i := 1; i <= 5; i++ {
		require.Equal(t, sender.LaneProven, f.Lane, "failures that come fast take some")
		f = decide(f, refused, t0.Add(time.Duration(i)*time.Minute))
		require.Equal(t, i, f.Streak)
	}
	require.Equal(t, sender.LaneProbation, f.Lane)
	require.Equal(t, t0.Add(time.Minute), f.FailingSince, "since the first of the streak")
	require.Equal(t, t0.Add(5*time.Minute), f.LastFailure)

	require.Equal(t, f, decide(f, dispatch.Result{Class: sender.ClassInterrupted}, t0.Add(time.Hour)), "what happened to us says nothing of the endpoint")
	healed := decide(f, fast, t0.Add(time.Hour))
	require.Equal(t, sender.Health{Lane: sender.LaneProven, LastSuccess: t0.Add(time.Hour), LastFailure: f.LastFailure}, healed)
}
