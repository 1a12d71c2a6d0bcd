package sender_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestPolicyDelivery(t *testing.T) {
	p := sender.Policy{Backoff: backoff.Policy{Jitter: backoff.None()}}
	failed := sender.Result{Class: sender.ClassStatus, StatusCode: 500}
	for _, c := range []struct {
		name   string
		live   sender.Live
		result sender.Result
		after  time.Duration
		status sender.Status
		delay  time.Duration
	}{
		{"success", sender.Live{Tries: 1}, sender.Result{}, 0, sender.StatusDelivered, 0},
		{"first failure", sender.Live{Tries: 1}, failed, 0, sender.StatusAwaitingRetry, time.Minute},
		{"second failure", sender.Live{Tries: 2}, failed, time.Minute, sender.StatusAwaitingRetry, 5 * time.Minute},
		{"a restarted schedule counts its own tries", sender.Live{Number: 11, Tries: 1}, failed, 0, sender.StatusAwaitingRetry, time.Minute},
		{"the last delay ends at the horizon", sender.Live{Tries: 9}, failed, 70 * time.Hour, sender.StatusAwaitingRetry, 2 * time.Hour},
		{"a failure at the horizon is final", sender.Live{Tries: 11}, failed, 72 * time.Hour, sender.StatusDeadLettered, 0},
		{"Retry-After lengthens", sender.Live{Tries: 1}, sender.Result{Class: sender.ClassStatus, StatusCode: 503, RetryAfter: time.Hour}, 0, sender.StatusAwaitingRetry, time.Hour},
		{"Retry-After never shortens", sender.Live{Tries: 2}, sender.Result{Class: sender.ClassStatus, StatusCode: 429, RetryAfter: time.Second}, 0, sender.StatusAwaitingRetry, 5 * time.Minute},
		{"an interrupted attempt is made again at once", sender.Live{Tries: 3}, sender.Result{Class: sender.ClassInterrupted}, time.Hour, sender.StatusAwaitingRetry, 0},
		{"but not beyond the horizon", sender.Live{Tries: 3}, sender.Result{Class: sender.ClassInterrupted}, 73 * time.Hour, sender.StatusDeadLettered, 0},
		{"a single attempt that fails leaves it delivered", sender.Live{Tries: 1, Single: true}, failed, 0, sender.StatusDelivered, 0},
		{"a single attempt that is lost too", sender.Live{Tries: 1, Single: true}, sender.Result{Class: sender.ClassInterrupted}, 0, sender.StatusDelivered, 0},
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

func TestPolicyHealth(t *testing.T) {
	p := sender.Policy{}
	decide := func(h sender.Health, r sender.Result, now time.Time) sender.Health {
		return p.Decide(sender.Live{Tries: 1, First: now}, h, r, now).Health
	}
	fast := sender.Result{Duration: 20 * time.Millisecond}
	slow := sender.Result{Duration: 9 * time.Second}
	refused := sender.Result{Class: sender.ClassConnect, Duration: time.Millisecond}

	h := decide(sender.Health{}, fast, t0)
	require.Equal(t, sender.Health{Lane: sender.LaneProven, LastSuccess: t0}, h)
	require.Equal(t, h, decide(h, fast, t0.Add(59*time.Second)), "a healthy subscription's row is not written with every success")
	require.Equal(t, t0.Add(time.Minute), decide(h, fast, t0.Add(time.Minute)).LastSuccess)

	require.Equal(t, sender.LaneProbation, decide(h, slow, t0).Lane, "an answer after nine seconds")
	require.Equal(t, sender.LaneProbation, decide(h, sender.Result{Class: sender.ClassTimeout, Duration: 10 * time.Second}, t0).Lane)

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

	require.Equal(t, f, decide(f, sender.Result{Class: sender.ClassInterrupted}, t0.Add(time.Hour)), "what happened to us says nothing of the endpoint")
	healed := decide(f, fast, t0.Add(time.Hour))
	require.Equal(t, sender.Health{Lane: sender.LaneProven, LastSuccess: t0.Add(time.Hour), LastFailure: f.LastFailure}, healed)
}
