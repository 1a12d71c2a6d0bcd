package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
)

// In whatever order deliveries are claimed, answered, slowed and given back, a lane, a
// subscriber, a subscription and the whole never have more on the wire than their places.
// The accounts agree with the deliveries, and no delivery waits while it could go.
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
					own := sub.subscriber.lane[sub.lane].wire
					could := len(sub.queue) > 0 && !s.fullFor(sub.subscriber) && sub.wire < sub.places &&
						lane.wire < s.places(sub.lane) && own < s.perSubscriber(sub.lane) &&
						(own == 0 || lane.wire < s.shared(sub.lane, s.places(sub.lane)))
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
					by := map[*subscriberSlots]int{}
					for _, a := range wire {
						if int(a.account) == l && !a.slow {
							by[a.sub.subscriber]++
						}
					}
					for subscriber, n := range by {
						require.LessOrEqual(t, n, s.perSubscriber(sender.Lane(l)), "subscriber %d in lane %d", subscriber.number, l)
					}
					require.LessOrEqual(t, onWire[l]-slow, s.places(sender.Lane(l)), "lane %d", l)
				}
			},
		})
	})
}
