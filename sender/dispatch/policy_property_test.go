package dispatch_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// past is an oracle's memory of a subscription: everything.
type past struct {
	failures []time.Time // of the present failing time, in order
	told     []int       // the warnings in it, in percent
	toldAt   time.Time   // when the last warning was
}

// The test checks random histories of a subscription's results against rules that are read
// off the whole history, and not off the memory of a row.
func TestPolicyHoldsOverRandomHistories(t *testing.T) {
	t.Parallel()
	var warned, disabled, dead, stood, spared int
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := dispatch.Policy{DisableAfter: time.Duration(1+r.IntN(120)) * h}
		success, gap := r.IntN(30), 1+r.IntN(30)
		var hl sender.Health
		var o past
		now := t0
		for range 300 {
			now = now.Add(time.Duration(r.Int64N(int64(gap) * int64(h))))
			live := dispatch.Live{Tries: 1 + r.IntN(12), First: now.Add(-time.Duration(r.Int64N(int64(80 * h)))), Notice: r.IntN(8) == 0, Single: r.IntN(8) == 0, Spared: r.IntN(2) == 0}
			live.Number = live.Tries
			result := dispatch.Result{Class: sender.ClassTimeout, StartedAt: now.Add(-time.Second), Duration: time.Duration(r.IntN(2000)) * time.Millisecond, Chance: r.Float64()}
			switch n := r.IntN(100); {
			case n < success:
				result.Class = sender.ClassNone
			case n < success+10:
				result.Class = sender.ClassInterrupted
			case n < success+20:
				if result.OwnNetwork = r.IntN(2) == 0; !result.OwnNetwork {
					result.ProxyFailed = true
				}
				live.Stood = time.Duration(r.Int64N(int64(200 * h)))
			case n < success+30:
				result.Class, result.ClosedIdle = sender.ClassReset, true
			}
			before := hl
			d := p.Decide(live, hl, result, now)
			hl = d.Health

			require.False(t, d.Status == sender.StatusAwaitingRetry && d.Due.Before(now), "due in the past")
			require.GreaterOrEqual(t, d.Stands, time.Duration(0))
			require.Equal(t, result.ClosedIdle && !live.Spared, d.Spared, "spared exactly by the rule")
			require.True(t, d.Spared || live.Stood+d.Stands <= max(live.Stood, 144*h), "twice the horizon")
			require.Equal(t, d.Status == sender.StatusDeadLettered && !live.Notice, has(d.Notices, sender.NoticeDeadLettered))
			switch {
			case d.Spared:
				spared++
				require.True(t, d.Uncounted)
				require.Equal(t, sender.StatusAwaitingRetry, d.Status, "it ends nothing")
				require.InDelta(t, time.Second, d.Due.Sub(now), float64(time.Second/5))
				require.Empty(t, d.Notices)
			case d.Uncounted:
				stood++
				require.True(t, result.OwnNetwork || result.ProxyFailed)
			}
			switch {
			case result.Class == sender.ClassNone:
				o = past{}
			case result.Class == sender.ClassInterrupted, result.ProxyFailed, result.OwnNetwork && d.Uncounted, d.Spared:
				require.Equal(t, before, hl, "it says nothing of the endpoint")
			default:
				if n := len(o.failures); n > 0 && now.Sub(o.failures[n-1]) > 24*h {
					o = past{}
				}
				o.failures = append(o.failures, now)
				require.Len(t, o.failures, hl.Streak)
				failing := now.Sub(o.failures[0])
				due := len(o.failures) >= 5
				warnedOf := slices.Contains(o.told, 90) && now.Sub(o.toldAt) >= p.DisableAfter/10
				require.Equal(t, due && failing >= p.DisableAfter && warnedOf, d.Disable != "", "disabled exactly by the rule")
				want := 0
				for _, percent := range []int{50, 75, 90} {
					if due && failing*100 >= p.DisableAfter*time.Duration(percent) {
						want = percent
					}
				}
				for _, told := range o.told {
					if told >= want {
						want = 0
					}
				}
				if want > 0 {
					o.told, o.toldAt = append(o.told, want), now
				}
				require.Equal(t, d.Disable != "", has(d.Notices, sender.NoticeDisabled))
				require.Equal(t, want > 0, has(d.Notices, sender.NoticeFailing))
				for _, n := range d.Notices {
					require.False(t, n.Kind == sender.NoticeFailing && n.Percent != want)
				}
			}
			for _, n := range d.Notices {
				switch n.Kind {
				case sender.NoticeDeadLettered:
					dead++
				case sender.NoticeFailing:
					warned++
				case sender.NoticeDisabled:
					disabled++
				}
			}
		}
	}
	for _, n := range []int{warned, disabled, dead, stood, spared} {
		require.Greater(t, n, 50, "the histories get everywhere: %d warned, %d disabled, %d dead, %d stood, %d spared", warned, disabled, dead, stood, spared)
	}
}

func has(notices []sender.Notice, kind sender.NoticeKind) bool {
	for _, n := range notices {
		if n.Kind == kind {
			return true
		}
	}
	return false
}
