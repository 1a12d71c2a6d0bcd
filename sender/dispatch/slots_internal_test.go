package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func testSlots() *slots {
	return newSlots(slotsConfig{places: [sender.Lanes]int{sender.LaneNew: 2, sender.LaneProven: 24, sender.LaneProbation: 8}, perSubscription: 6, prefetch: 4, hardLimit: 64})
}

func claimed(subscription, subscriber int64, lane sender.Lane) *attempt {
	return &attempt{Claimed: Claimed{Target: &Target{SubscriptionNo: subscription, SubscriberNumber: subscriber, Lane: lane}}}
}

// drive starts all attempts that may start, and returns them.
func drive(s *slots) (started []*attempt) {
	for a := s.next(); a != nil; a = s.next() {
		started = append(started, a)
	}
	return started
}

func TestSlotsProbationIsBounded(t *testing.T) {
	s := testSlots()
	for range 3 {
		s.add(claimed(1, 1, sender.LaneProbation))
	}
	require.Len(t, drive(s), 1, "each starts with one")
	for sub := int64(2); sub <= 100; sub++ { // a hundred failing subscriptions
		s.add(claimed(sub, sub%3, sender.LaneProbation))
	}
	require.Len(t, drive(s), 8-1)
	require.Zero(t, s.claim().Lanes[sender.LaneProbation].Slots)

	for range 6 {
		s.add(claimed(1000, 1000, sender.LaneProven))
	}
	require.Len(t, drive(s), 4, "a proven subscription has places of its own, and starts with four")
	s.add(claimed(2000, 2000, sender.LaneNew))
	require.Len(t, drive(s), 1, "and so has a new one")
}

// The lanes' places are the configured slots, and no more.
func TestSlotsAreDivided(t *testing.T) {
	for all, want := range map[int][sender.Lanes]int{
		4:   {sender.LaneNew: 1, sender.LaneProven: 2, sender.LaneProbation: 1},
		20:  {sender.LaneNew: 2, sender.LaneProven: 16, sender.LaneProbation: 2},
		256: {sender.LaneNew: 32, sender.LaneProven: 192, sender.LaneProbation: 32},
	} {
		s := newPump(&Dispatcher{now: time.Now, cfg: Config{Slots: all}.withDefaults()}).slots
		require.Equal(t, want, s.cfg.places)
		require.Equal(t, min(32, want[sender.LaneProven]), s.cfg.perSubscription)
		require.Equal(t, 2*all, s.cfg.hardLimit)
	}
}

func TestSlotsPlacesAreEarnedAndLost(t *testing.T) {
	s := testSlots()
	const fast = time.Second
	for range 40 {
		s.add(claimed(1, 1, sender.LaneNew))
	}
	wire := drive(s)
	require.Len(t, wire, 1, "a new subscription starts with one")
	grown := []int{}
	for range 8 {
		a := wire[0]
		wire = wire[1:]
		s.finished(a, sender.ClassNone, fast, fast)
		s.recorded(a)
		wire = append(wire, drive(s)...)
		grown = append(grown, len(wire))
	}
	require.Equal(t, []int{2, 3, 4, 5, 6, 6, 6, 6}, grown, "one more with each fast answer, up to the maximum")
	require.Equal(t, sender.LaneProven, s.subs[1].lane)

	s.finished(wire[0], sender.ClassStatus, fast, fast)
	require.Equal(t, 3, s.subs[1].places, "a failure that comes fast halves them")
	require.Equal(t, sender.LaneProven, s.subs[1].lane)

	s.finished(wire[1], sender.ClassTimeout, 10*time.Second, fast)
	require.Equal(t, 1, s.subs[1].places, "one that takes long leaves one")
	require.Equal(t, sender.LaneProbation, s.subs[1].lane)

	s.finished(wire[2], sender.ClassNone, time.Millisecond, fast)
	require.Equal(t, sender.LaneProbation, s.subs[1].lane, "a fast answer while others are on the wire beyond its places proves nothing")

	s.add(claimed(2, 2, sender.LaneProven))
	s.finished(drive(s)[0], sender.ClassNone, fast+1, fast)
	require.Equal(t, 1, s.subs[2].places, "a slow answer counts as one that never comes")
	require.Equal(t, sender.LaneProbation, s.subs[2].lane)
}

// A subscription that never has more to do than it has places for earns none. It is forgotten
// once it had nothing to do between two trims.
func TestSlotsPlacesAreEarnedByUse(t *testing.T) {
	s := testSlots()
	s.trim()
	for range 20 {
		s.add(claimed(1, 1, sender.LaneProven))
		s.add(claimed(1, 1, sender.LaneProven))
		for _, a := range drive(s) {
			s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
			s.recorded(a)
		}
	}
	require.Equal(t, firstPlaces[sender.LaneProven], s.subs[1].places)
	s.trim()
	require.Contains(t, s.subs, int64(1))
	s.trim()
	require.Empty(t, s.subs)
}

// If many kept connections are closed together, their subscription loses neither places nor
// its lane.
func TestSlotsSparedSaysNothing(t *testing.T) {
	s := testSlots()
	for range 2 * probationStreak {
		s.add(claimed(1, 1, sender.LaneProven))
	}
	made := 0
	for wire := drive(s); len(wire) > 0; wire = drive(s) {
		for _, a := range wire {
			s.spared(a)
			s.recorded(a)
			made++
		}
	}
	require.Equal(t, 2*probationStreak, made)
	require.Equal(t, sender.LaneProven, s.subs[1].lane)
	require.Equal(t, firstPlaces[sender.LaneProven], s.subs[1].places)
	require.Zero(t, s.subs[1].failures)
	require.Zero(t, s.wire)
	require.Zero(t, s.subs[1].unrecorded)
}

func TestSlotsWhatHangsGivesItsPlacesBack(t *testing.T) {
	s := testSlots()
	for sub := int64(1); sub <= 7; sub++ {
		for range 4 {
			s.add(claimed(sub, sub, sender.LaneProven))
		}
	}
	hanging := drive(s)
	for sub := int64(8); sub <= 10; sub++ {
		s.add(claimed(sub, sub, sender.LaneProven))
	}
	hanging = append(hanging, drive(s)...)
	require.Len(t, hanging, 24)
	s.add(claimed(100, 100, sender.LaneProven))
	require.Empty(t, drive(s), "the lane is full")

	for _, a := range hanging {
		s.slowed(a)
	}
	require.Len(t, drive(s), 1, "its places are free again while the others hang")
	require.Equal(t, 1, s.lane[sender.LaneProven].wire)
	require.Equal(t, 24, s.lane[sender.LaneProbation].wire)
	require.Zero(t, s.claim().Lanes[sender.LaneProbation].Slots, "probation is over its bound until they end")

	back := s.takeQueues(false)
	require.Len(t, back, 0, "each keeps what it has a place for")
	for range 5 {
		s.add(claimed(1, 1, sender.LaneProven))
	}
	require.Len(t, s.takeQueues(false), 5-1+1, "what it has queued beyond is given back")

	for _, a := range hanging {
		s.finished(a, sender.ClassTimeout, 10*time.Second, time.Second)
	}
	wire := drive(s)
	require.Len(t, wire, 7)
	for _, a := range wire {
		require.Equal(t, sender.LaneProbation, a.account, "what was claimed while it was proven takes no proven place")
	}
}

func TestSlotsOwnMaxInFlight(t *testing.T) {
	s := testSlots()
	bounded := func(most int) *attempt {
		a := claimed(1, 1, sender.LaneProven)
		a.Target.Settings = &sender.Settings{MaxInFlight: most}
		return a
	}
	for range 20 {
		s.add(bounded(2))
	}
	wire := drive(s)
	require.Len(t, wire, 2, "fewer than a proven one starts with")
	require.Equal(t, 2*4-20, s.claim().SubscriptionRoom[1], "no more is claimed ahead than for its places")
	for range 5 {
		a := wire[0]
		s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
		s.recorded(a)
		wire = append(wire[1:], drive(s)...)
		require.Len(t, wire, 2, "fast answers earn no more")
	}

	s.add(bounded(1)) // its owner has changed the setting
	s.finished(wire[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Empty(t, drive(s), "the one on the wire is as many as it may have")
	s.add(bounded(0))
	s.finished(wire[1], sender.ClassNone, time.Millisecond, time.Second)
	require.Len(t, drive(s), 2, "without the bound it earns again")

	s.add(bounded(1000))
	require.Equal(t, 6, s.subs[1].most, "it cannot be more than any may have")
	s.add(claimed(2, 2, sender.LaneNew))
	require.Len(t, drive(s), 1, "others are not bounded by it")
}

// A subscription that fails fast does not keep a place among the proven ones.
func TestSlotsWhatFailsGivesItsPlacesBack(t *testing.T) {
	s := testSlots()
	for range 40 {
		s.add(claimed(1, 1, sender.LaneProven))
	}
	for i := range probationStreak {
		require.Equal(t, sender.LaneProven, s.subs[1].lane)
		wire := drive(s)
		if i == 0 {
			require.Len(t, wire, 4)
		}
		for _, a := range wire[1:] { // the deliveries that it held beyond
			s.offWire(a)
		}
		s.finished(wire[0], sender.ClassStatus, time.Millisecond, time.Second)
	}
	require.Equal(t, sender.LaneProbation, s.subs[1].lane)
	require.Equal(t, 1, s.subs[1].places)
	s.add(claimed(2, 2, sender.LaneNew))
	s.finished(s.next(), sender.ClassStatus, time.Millisecond, time.Second)
	require.Equal(t, sender.LaneProbation, s.subs[2].lane, "a new one that fails at once was never believed")
	require.True(t, s.crowded)
	queued := len(s.subs[1].queue)
	require.Len(t, s.takeQueues(false), queued-1, "what it has queued is given back")
	require.False(t, s.crowded)

	wire := drive(s)
	s.finished(wire[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Equal(t, sender.LaneProven, s.subs[1].lane, "once, it is believed at once")

	for i := range 3 * probationStreak {
		class := sender.ClassStatus
		if i%probationStreak == 0 {
			class = sender.ClassNone
		}
		s.add(claimed(3, 3, sender.LaneProven))
		s.finished(drive(s)[0], class, time.Millisecond, time.Second)
	}
	require.Equal(t, sender.LaneProven, s.subs[3].lane, "failures that are not in a row")
}

// A flapping subscription stays on probation for longer each time.
func TestSlotsParole(t *testing.T) {
	s := testSlots()
	prove := func() sender.Lane {
		a := claimed(1, 1, sender.LaneProven)
		s.add(a)
		require.Len(t, drive(s), 1)
		s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
		s.recorded(a)
		return s.subs[1].lane
	}
	fall := func() {
		a := claimed(1, 1, sender.LaneProven)
		s.add(a)
		require.Len(t, drive(s), 1)
		s.slowed(a)
		s.finished(a, sender.ClassTimeout, 10*time.Second, time.Second)
		s.recorded(a)
		require.Equal(t, sender.LaneProbation, s.subs[1].lane)
	}
	for _, ages := range []int{0, 3, 6, 12, 24, 48, 60, 60} {
		require.Equal(t, sender.LaneProven, prove())
		fall()
		for range ages {
			require.Equal(t, sender.LaneProbation, prove(), "probation of %d", ages)
			require.Contains(t, s.claim().SubscriptionRoom, int64(1))
			require.Equal(t, 0, s.lane[sender.LaneProven].held)
			s.trim()
		}
	}
	require.Equal(t, sender.LaneProven, prove())
	for range probationSoon + 1 {
		require.Equal(t, sender.LaneProven, prove())
		s.trim()
	}
	fall()
	require.Equal(t, sender.LaneProven, prove(), "it was long ago")
	fall()
	s.trim()
	s.trim()
	require.Equal(t, sender.LaneProbation, prove(), "it is remembered though it had nothing to do")
}

// A process goes by its own results of a subscription until they are recorded, and then by
// the database, which has those of all processes.
func TestSlotsLaneOfTheDatabase(t *testing.T) {
	s := testSlots()
	hung := claimed(1, 1, sender.LaneProven)
	s.add(hung)
	drive(s)
	s.finished(hung, sender.ClassTimeout, 10*time.Second, time.Second)
	room, bounded := s.claim().SubscriptionRoom[1]
	require.True(t, bounded, "the database takes it for a proven one")
	require.Equal(t, 1, room)
	s.recorded(hung)
	require.NotContains(t, s.claim().SubscriptionRoom, int64(1))

	s.add(claimed(1, 1, sender.LaneProven))
	wire := drive(s)
	require.Len(t, wire, 1)
	require.Equal(t, sender.LaneProven, wire[0].account, "another process has seen it answer")
}

// While our own network is down a few attempts at a time find out when it is back.
func TestSlotsProbing(t *testing.T) {
	s := testSlots()
	for sub := int64(1); sub <= 30; sub++ {
		s.add(claimed(sub, sub, sender.Lane(sub%sender.Lanes)))
	}
	s.probing = true
	wire := drive(s)
	count := map[sender.Lane]int{}
	for _, a := range wire {
		count[a.account]++
	}
	require.Equal(t, map[sender.Lane]int{sender.LaneNew: 1, sender.LaneProven: 2, sender.LaneProbation: 1}, count, "of all, and most of those that used to answer")
	for _, a := range wire {
		s.slowed(a)
	}
	require.Empty(t, drive(s), "four in all, though they hang")
	for _, l := range s.claim().Lanes {
		require.Zero(t, l.Slots)
	}
	s.probing = false
	require.NotEmpty(t, drive(s))

	s = testSlots()
	for sub := int64(1); sub <= 10; sub++ {
		s.add(claimed(sub, sub, sender.LaneNew))
	}
	s.probing = true
	for range 2 {
		wire = drive(s)
		require.Len(t, wire, 1)
		s.slowed(wire[0])
	}
	require.Empty(t, drive(s), "two are for those that used to answer, though they have no work")
	for range 3 {
		s.add(claimed(20, 20, sender.LaneProven))
	}
	require.Len(t, drive(s), 1, "half of a lane for each subscriber")
	require.Zero(t, s.claim().Lanes[sender.LaneProven].Slots, "nothing is claimed ahead")
}

func TestSlotsHardLimit(t *testing.T) {
	s := testSlots()
	s.cfg.hardLimit = 10
	for sub := int64(1); sub <= 30; sub++ {
		s.add(claimed(sub, sub, sender.LaneProven))
	}
	require.Len(t, drive(s), 10)
	for _, l := range s.claim().Lanes {
		require.Zero(t, l.Slots)
	}

	s = testSlots()
	for l := range sender.Lane(sender.Lanes) {
		s.add(claimed(int64(l), 1, l))
	}
	var order []sender.Lane
	for _, a := range drive(s) {
		order = append(order, a.account)
	}
	require.Equal(t, []sender.Lane{sender.LaneProven, sender.LaneNew, sender.LaneProbation}, order, "what is left of it goes to those that answer fast")
}

// The accounts are sums over the held deliveries, whatever happens in whatever order.
func TestSlotsAccountsAddUp(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := testSlots()
		var wire, done []*attempt
		for range 1000 {
			switch r.IntN(7) {
			case 0, 1:
				sub := r.Int64N(30)
				s.add(claimed(sub, sub%7, sender.Lane(r.IntN(sender.Lanes))))
			case 2:
				wire = append(wire, drive(s)...)
			case 3, 4:
				if len(wire) > 0 {
					i := r.IntN(len(wire))
					class, took := sender.ClassNone, time.Duration(r.IntN(2))*2*time.Second
					if r.IntN(3) == 0 {
						class = sender.ClassStatus
					}
					s.finished(wire[i], class, took, time.Second)
					done = append(done, wire[i])
					wire = append(wire[:i], wire[i+1:]...)
				}
			case 5:
				for _, a := range done {
					s.recorded(a)
				}
				done = done[:0]
				for _, a := range s.takeQueues(r.IntN(10) == 0) {
					s.forget(a)
				}
			case 6:
				if len(wire) > 0 {
					if a := wire[r.IntN(len(wire))]; !a.slow {
						s.slowed(a)
					}
				}
				s.trim()
			}
			held, onWire, queued := 0, 0, 0
			ready := [sender.Lanes]map[*subscriberSlots]int{{}, {}, {}}
			for _, sub := range s.subs {
				require.Same(t, s.by[sub.subscriber.number], sub.subscriber)
				if len(sub.queue) > 0 {
					ready[sub.lane][sub.subscriber]++
				}
				require.GreaterOrEqual(t, sub.wire, 0)
				require.GreaterOrEqual(t, sub.places, 1)
				require.LessOrEqual(t, sub.places, s.cfg.perSubscription)
				held, onWire, queued = held+sub.held, onWire+sub.wire, queued+len(sub.queue)
			}
			for l := range s.lane {
				require.Len(t, s.lane[l].ready, len(ready[l]))
				ofLane := 0
				for _, by := range s.by {
					require.Len(t, by.lane[l].ready, ready[l][by])
					ofLane += by.lane[l].held
				}
				require.Equal(t, s.lane[l].held, ofLane)
			}
			require.Equal(t, len(wire), onWire)
			require.Equal(t, len(wire), s.wire)
			require.Equal(t, s.lane[0].wire+s.lane[1].wire+s.lane[2].wire, s.wire)
			require.Equal(t, s.lane[0].held+s.lane[1].held+s.lane[2].held, s.held)
			require.Equal(t, held, s.held)
			require.Equal(t, len(wire)+queued, s.held)
			require.LessOrEqual(t, s.lane[sender.LaneProven].wire, s.cfg.places[sender.LaneProven])
		}
		for _, a := range append(wire, done...) {
			if a.started.IsZero() && len(wire) > 0 && contains(wire, a) {
				s.finished(a, sender.ClassNone, 0, time.Second)
			}
			s.recorded(a)
		}
		for _, a := range s.takeQueues(true) {
			s.forget(a)
		}
		require.Zero(t, s.held)
		require.Zero(t, s.wire)
		for _, by := range s.by {
			require.Zero(t, by.wire)
			require.Zero(t, by.bytes)
			for _, own := range by.lane {
				require.Zero(t, own.wire)
				require.Zero(t, own.held)
				require.Empty(t, own.ready)
			}
		}
		for range probationMost + probationSoon + 2 {
			s.trim()
		}
		require.Empty(t, s.subs, "nothing is remembered of those with nothing to do")
		require.Empty(t, s.by)
	}
}

func contains(list []*attempt, a *attempt) bool {
	for _, b := range list {
		if a == b {
			return true
		}
	}
	return false
}
