package dispatch

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
)

var propertyTime = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// Whatever is claimed, answered, slowed and given back in whatever order: a lane, a
// subscriber, a subscription and the whole never have more on the wire than is theirs,
// the accounts agree with what is there, and nothing waits while it could go.
func TestPropertySlotsAreSharedFairly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := testSlots()
		var wire, done []*attempt
		maxIn := map[int64]int{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				subscription := rapid.Int64Range(1, 12).Draw(t, "subscription")
				a := claimed(subscription, subscription%4, sender.Lane(rapid.IntRange(0, sender.Lanes-1).Draw(t, "lane")))
				if most := rapid.IntRange(0, 3).Draw(t, "most"); most > 0 {
					a.Target.Settings = &sender.Settings{MaxInFlight: most}
				}
				s.add(a)
				maxIn[subscription] = s.subs[subscription].most
			},
			"start": func(t *rapid.T) {
				for a := s.next(); a != nil; a = s.next() {
					require.False(t, slices.Contains(wire, a), "twice on the wire")
					require.LessOrEqual(t, a.sub.wire, max(a.sub.places, 1))
					require.LessOrEqual(t, a.sub.wire, maxIn[a.sub.number])
					wire = append(wire, a)
				}
				for _, sub := range s.subs {
					lane := &s.lane[sub.lane]
					could := len(sub.queue) > 0 && !s.full() && sub.wire < sub.places &&
						lane.wire < s.places(sub.lane) && lane.by[sub.subscriber].wire < s.perSubscriber(sub.lane)
					require.False(t, could, "subscription %d waits, and could go", sub.number)
				}
			},
			"finish": func(t *rapid.T) {
				if len(wire) == 0 {
					return
				}
				i := rapid.IntRange(0, len(wire)-1).Draw(t, "which")
				a := wire[i]
				wire = slices.Delete(wire, i, i+1)
				class := rapid.SampledFrom([]sender.Class{sender.ClassNone, sender.ClassNone, sender.ClassStatus, sender.ClassTimeout}).Draw(t, "class")
				s.finished(a, class, time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms"))*time.Millisecond, time.Second)
				done = append(done, a)
			},
			"slow": func(t *rapid.T) {
				if len(wire) > 0 {
					if a := wire[rapid.IntRange(0, len(wire)-1).Draw(t, "which")]; !a.slow {
						s.slowed(a)
					}
				}
			},
			"record": func(*rapid.T) {
				for _, a := range done {
					s.recorded(a)
				}
				done = nil
			},
			"give back": func(t *rapid.T) {
				for _, a := range s.takeQueues(rapid.Bool().Draw(t, "all")) {
					s.forget(a)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(wire), s.wire)
				require.LessOrEqual(t, s.wire, s.cfg.hardLimit)
				onWire, held := [sender.Lanes]int{}, [sender.Lanes]int{}
				for _, a := range wire {
					onWire[a.account]++
					held[a.account]++
				}
				for _, sub := range s.subs {
					for _, a := range sub.queue {
						held[a.account]++
					}
				}
				slow := 0
				for _, a := range wire {
					if a.slow {
						slow++
					}
				}
				for l := range s.lane {
					require.Equal(t, onWire[l], s.lane[l].wire, "lane %d", l)
					require.Equal(t, held[l], s.lane[l].held, "lane %d", l)
					by := map[int64]int{}
					for _, a := range wire {
						if int(a.account) == l && !a.slow {
							by[a.sub.subscriber]++
						}
					}
					for subscriber, n := range by {
						require.LessOrEqual(t, n, s.perSubscriber(sender.Lane(l)), "subscriber %d in lane %d", subscriber, l)
					}
					require.LessOrEqual(t, onWire[l]-slow, s.places(sender.Lane(l)), "lane %d", l)
				}
			},
		})
	})
}

// A retention that is accepted keeps the contract: what gave up can be sent again, the
// receivers remember whatever is sent, and a record never outlives its event.
func TestPropertyRetentionIsOneContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := func(label string, some ...int) time.Duration {
			return time.Duration(rapid.SampledFrom(some).Draw(t, label)) * 24 * time.Hour
		}
		// Mostly of what is right, so that what is wrong is so in one place.
		r := sender.Retention{
			Reach: days("reach", 0, 7, 27, 29), Receivers: days("receivers", 0, 27, 28, 29, 60), Delivered: days("delivered", 0, 20, 60, 90),
			Events: days("events", 0, 30, 60, 90), DeadLetters: days("dead letters", 0, 20, 28, 365),
		}
		if rapid.Bool().Draw(t, "for ever") {
			r.DeadLetters = -1
		}
		horizon := days("horizon", 0, 3, 7, 28)
		full := r.WithDefaults()
		want := full.Reach >= horizon && full.Receivers >= full.Reach+dedup.RetentionMargin &&
			full.Delivered >= full.Reach && full.Events >= full.Delivered && (full.DeadLetters < 0 || full.DeadLetters >= full.Reach)
		require.Equal(t, want, len(full.Problems(horizon)) == 0, "%+v, horizon %v: %v", full, horizon, full.Problems(horizon))
		if !want {
			return
		}
		oldest, goes := full.NotBefore(propertyTime), past(full, propertyTime)
		require.False(t, goes.Events.After(oldest), "an event is gone that may be redelivered")
		require.False(t, goes.Delivered.After(oldest), "a record is gone that may be redelivered")
		require.False(t, goes.Events.After(goes.Delivered), "a record outlives its event")
		require.False(t, goes.DeadLetters.After(oldest), "a dead letter is gone that may be replayed")
		require.Equal(t, full.DeadLetters < 0, goes.DeadLetters.IsZero())
	})
}

// A decision depends on what it is given and on nothing else, is due not before now nor
// before it was asked for, and to fail later is never to be warned less.
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
		if d.Disable != "" {
			after := cmp.Or(p.DisableAfter, defaultDisableAfter)
			require.Equal(t, 90, h.Warned, "nobody was warned")
			require.GreaterOrEqual(t, propertyTime.Sub(h.WarnedAt), after/10, "too soon after the last warning")
		}
		require.False(t, r.Class == sender.ClassNone && d.Disable != "", "a success disables")
		if r.Class != sender.ClassNone && h.Streak > 0 {
			require.GreaterOrEqual(t, d.Health.Warned, h.Warned, "what was warned of is forgotten")
		}
		for _, n := range d.Notices {
			require.True(t, n.Kind != sender.NoticeFailing || n.Percent > h.Warned, "warned of %d %% after %d %%", n.Percent, h.Warned)
		}

		// With a result that comes later, what was warned of stays warned of.
		later := p.Decide(live, h, r, propertyTime.Add(hours("later", 20)))
		if r.Class != sender.ClassNone && r.Class != sender.ClassInterrupted && !r.OwnNetwork && !r.ProxyFailed && !d.Spared && h.Streak > 0 && later.Health.Streak > 1 {
			require.True(t, later.Disable != "" || later.Health.Warned >= d.Health.Warned)
			require.True(t, d.Disable == "" || later.Disable != "")
		}
	})
}
