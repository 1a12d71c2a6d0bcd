package dispatch

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
)

var propertyTime = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// A decision depends only on its arguments. Its due time is neither before now nor before
// the time that was asked for. An attempt that fails later never gets a lower warning.
func TestPropertyDecisionsArePure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{DisableAfter: time.Duration(rapid.IntRange(0, 200).Draw(t, "disable after")) * time.Hour}
		hours := func(label string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Hour
		}
		live := Live{Tries: rapid.IntRange(1, 12).Draw(t, "tries"), First: propertyTime.Add(-hours("age", 80)), Single: rapid.Bool().Draw(t, "single"), Notice: rapid.Bool().Draw(t, "notice"), Spared: rapid.Bool().Draw(t, "spared")}
		live.Number = live.Tries
		failing := hours("failing", 200)
		h := sender.Health{Lane: sender.Lane(rapid.IntRange(0, sender.Lanes-1).Draw(t, "lane")), Streak: rapid.IntRange(0, 20).Draw(t, "streak")}
		if h.Streak > 0 {
			h.FailingSince, h.LastFailure = propertyTime.Add(-failing), propertyTime.Add(-min(failing, time.Hour))
			if h.Warned = rapid.SampledFrom([]int{0, 50, 75, 90}).Draw(t, "warned"); h.Warned > 0 {
				h.WarnedAt = propertyTime.Add(-time.Duration(rapid.Int64Range(0, int64(failing)).Draw(t, "warned ago")))
			}
		}
		r := Result{
			Class:  rapid.SampledFrom([]sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassStatus, sender.ClassInterrupted, sender.ClassBlocked, sender.ClassReset}).Draw(t, "class"),
			Chance: rapid.Float64Range(0, 0.99).Draw(t, "chance"), StartedAt: propertyTime.Add(-time.Second), Duration: time.Second,
			RetryAfter: hours("retry after", 30), OwnNetwork: rapid.Bool().Draw(t, "own network"), ProxyFailed: rapid.Bool().Draw(t, "proxy failed"),
			ClosedIdle: rapid.Bool().Draw(t, "closed idle"),
		}
		d := p.Decide(live, h, r, propertyTime)
		require.Equal(t, d, p.Decide(live, h, r, propertyTime))
		if d.Spared {
			require.False(t, live.Spared, "spared twice in a row")
			require.Equal(t, h, d.Health)
			require.Equal(t, sender.StatusAwaitingRetry, d.Status)
			require.True(t, d.Uncounted)
			require.GreaterOrEqual(t, d.Due.Sub(propertyTime), 800*time.Millisecond)
			require.LessOrEqual(t, d.Due.Sub(propertyTime), 1200*time.Millisecond)
			require.Empty(t, d.Notices)
			require.Empty(t, d.Disable)
		}
		switch d.Status {
		case sender.StatusAwaitingRetry:
			require.False(t, d.Due.Before(propertyTime))
			if !d.Uncounted && r.Class != sender.ClassInterrupted {
				left := 72*time.Hour - propertyTime.Sub(live.First)
				require.GreaterOrEqual(t, d.Due.Sub(propertyTime), min(r.RetryAfter, 24*time.Hour, left))
			}
		case sender.StatusDelivered:
			require.True(t, r.Class == sender.ClassNone || live.Single)
			require.True(t, r.Class != sender.ClassInterrupted || propertyTime.Sub(live.First) >= 72*time.Hour, "a single attempt that was lost ends its redelivery")
		default:
			require.Equal(t, sender.StatusDeadLettered, d.Status)
			require.NotEqual(t, sender.ClassNone, r.Class)
		}
		for _, n := range d.Notices {
			require.False(t, live.Notice && n.Kind == sender.NoticeDeadLettered, "a notice of a notice that is a dead letter")
		}
		after := cmp.Or(p.DisableAfter, defaultDisableAfter)
		warnedOf := func(h sender.Health) int { return min(h.Warned, passed(h.WarnedAt.Sub(h.FailingSince), after)) } // the time may have been shorter then
		warned := warnedOf(h)
		if d.Disable != "" {
			require.Equal(t, 90, warned, "nobody was warned of this time")
			require.GreaterOrEqual(t, propertyTime.Sub(h.WarnedAt), after/10, "too soon after the last warning")
		}
		require.False(t, r.Class == sender.ClassNone && d.Disable != "", "a success disables")
		if r.Class != sender.ClassNone && h.Streak > 0 {
			require.GreaterOrEqual(t, d.Health.Warned, warned, "what was warned of is forgotten")
		}
		for _, n := range d.Notices {
			require.True(t, n.Kind != sender.NoticeFailing || n.Percent > warned, "warned of %d %% after %d %%", n.Percent, warned)
		}

		// A result that comes later does not take back a warning.
		later := p.Decide(live, h, r, propertyTime.Add(hours("later", 20)))
		if r.Class != sender.ClassNone && r.Class != sender.ClassInterrupted && !r.OwnNetwork && !r.ProxyFailed && !d.Spared && h.Streak > 0 && later.Health.Streak > 1 {
			require.True(t, later.Disable != "" || later.Health.Warned >= warnedOf(d.Health))
			require.True(t, d.Disable == "" || later.Disable != "")
		}
	})
}
