package dispatch

import (
	"math/rand/v2"
	"strconv"
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
	for sub := int64(2); sub <= 100; sub++ { // a hundred subscribers with one failing subscription each
		s.add(claimed(sub, sub, sender.LaneProbation))
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

func TestSlotsSubscriberTakesHalfOfALane(t *testing.T) {
	s := testSlots()
	for sub := int64(1); sub <= 300; sub++ { // one subscriber with three hundred proven subscriptions
		s.add(claimed(sub, 1, sender.LaneProven))
	}
	require.Len(t, drive(s), 12)
	p := s.claim().Lanes[sender.LaneProven]
	require.LessOrEqual(t, p.SubscriberRoom[1], 0)
	require.Equal(t, 48, p.PerSubscriber, "the places it may have, times what is claimed ahead")

	s.add(claimed(999, 2, sender.LaneProven))
	require.Len(t, drive(s), 1, "another subscriber finds a place")
}

// A subscriber gets half of what the others leave of the wire, slow attempts included, and
// however fast its subscriptions begin to hang one after the other.
func TestSlotsSubscriberTakesHalfOfTheWire(t *testing.T) {
	s := testSlots()
	hang := func(subscriber int64) (begun int) {
		for n := range int64(200) {
			s.add(claimed(1000*subscriber+n, subscriber, sender.LaneProven))
		}
		for wire := drive(s); len(wire) > 0; wire = drive(s) {
			begun += len(wire)
			for _, a := range wire {
				s.slowed(a)
			}
		}
		for _, l := range s.claim().Lanes {
			room, bounded := l.SubscriberRoom[subscriber]
			require.True(t, bounded && room <= 0, "nothing more is claimed for it")
		}
		return begun
	}
	require.Equal(t, 64/2, hang(1))
	require.Equal(t, 64/4, hang(2))
	require.Equal(t, 64/8, hang(3))
}

// Subscribers take turns, however many subscriptions they have, and the last places are for
// those that have none.
func TestSlotsSubscribersTakeTurns(t *testing.T) {
	s := testSlots()
	for n := range int64(100) {
		s.add(claimed(100+n, 1, sender.LaneProven))
		s.add(claimed(200+n, 2, sender.LaneProven))
	}
	wire := drive(s)
	require.Len(t, wire, 24-24/idleShare, "though most of the subscriptions have none")
	third := claimed(300, 3, sender.LaneProven)
	s.add(third)
	require.Equal(t, []*attempt{third}, drive(s))

	fourth := claimed(400, 4, sender.LaneNew)
	for n := range int64(100) {
		s.add(claimed(500+n, 5, sender.LaneNew))
		s.add(claimed(600+n, 6, sender.LaneNew))
	}
	wire = drive(s)
	require.Len(t, wire, 2)
	s.add(fourth)
	for _, a := range wire {
		s.finished(a, sender.ClassStatus, time.Millisecond, time.Second)
	}
	wire = drive(s)
	require.Len(t, wire, 2)
	require.NotContains(t, wire, fourth)
	s.finished(wire[0], sender.ClassStatus, time.Millisecond, time.Second)
	require.Equal(t, []*attempt{fourth}, drive(s), "it waits for one turn of each of the others")
}

func TestSlotsSubscriptionsTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		places int
		of     func(subscription int64) (subscriber int64)
	}{
		"of three subscribers": {4, func(subscription int64) int64 { return subscription }},
		"of one":               {8, func(int64) int64 { return 1 }}, // it gets half
	} {
		t.Run(name, func(t *testing.T) {
			s := testSlots()
			s.cfg.places[sender.LaneProven] = c.places
			for range 10 {
				s.add(claimed(1, c.of(1), sender.LaneProven))
			}
			s.add(claimed(2, c.of(2), sender.LaneProven))
			s.add(claimed(3, c.of(3), sender.LaneProven))
			var order []int64
			for _, a := range drive(s) {
				order = append(order, a.sub.number)
			}
			require.Equal(t, []int64{1, 2, 3, 1}, order)
		})
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
		s.finished(a, sender.ClassNone, time.Millisecond, fast)
		s.recorded(a)
		wire = append(wire, drive(s)...)
		grown = append(grown, len(wire))
	}
	require.Equal(t, []int{2, 3, 4, 5, 6, 6, 6, 6}, grown, "one more with each fast answer, up to the maximum")
	require.Equal(t, sender.LaneProven, s.subs[1].lane)

	s.finished(wire[0], sender.ClassStatus, time.Millisecond, fast)
	require.Equal(t, 3, s.subs[1].places, "a failure that comes fast halves them")
	require.Equal(t, sender.LaneProven, s.subs[1].lane)

	s.finished(wire[1], sender.ClassTimeout, 10*time.Second, fast)
	require.Equal(t, 1, s.subs[1].places, "one that takes long leaves one")
	require.Equal(t, sender.LaneProbation, s.subs[1].lane)

	s.finished(wire[2], sender.ClassNone, time.Millisecond, fast)
	require.Equal(t, sender.LaneProbation, s.subs[1].lane, "a fast answer while others are on the wire beyond its places proves nothing")
}

// A subscription that never has more to do than it has places for earns none.
func TestSlotsPlacesAreEarnedByUse(t *testing.T) {
	s := testSlots()
	for range 20 {
		s.add(claimed(1, 1, sender.LaneProven))
		s.add(claimed(1, 1, sender.LaneProven))
		for _, a := range drive(s) {
			s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
			s.recorded(a)
		}
	}
	require.Equal(t, firstPlaces[sender.LaneProven], s.subs[1].places)
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

// An idle subscriber is claimed for and begins at once, however much the subscribers at
// work have earned and hold.
func TestSlotsIdleOnesHaveRoom(t *testing.T) {
	s := testSlots()
	const shared = 4 * 24 * 7 / 8
	for i := range shared {
		require.Equal(t, shared-i, s.claim().Lanes[sender.LaneProven].Slots, "no claim takes what is for others")
		sub := int64(1 + i%8)
		s.add(claimed(sub, sub, sender.LaneProven))
	}
	wire := drive(s)
	require.Len(t, wire, 24-24/idleShare, "the last places are for others")
	idle := claimed(9, 9, sender.LaneProven)
	s.add(idle)
	require.Equal(t, []*attempt{idle}, drive(s))
	s.finished(idle, sender.ClassNone, time.Millisecond, time.Second)
	s.recorded(idle)

	p := s.claim()
	require.Equal(t, 4*24-shared, p.Lanes[sender.LaneProven].Slots)
	for sub := int64(1); sub <= 8; sub++ {
		require.Equal(t, 0, p.Lanes[sender.LaneProven].SubscriberRoom[sub], "it holds something")
	}
	require.NotContains(t, p.Lanes[sender.LaneProven].SubscriberRoom, int64(9))

	s.finished(wire[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Len(t, drive(s), 1, "those at work go on with what is theirs")
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
	require.True(t, s.crowded)
	queued := len(s.subs[1].queue)
	require.Len(t, s.takeQueues(false), queued-1, "what it has queued is given back")
	require.False(t, s.crowded)

	wire := drive(s)
	s.finished(wire[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Equal(t, sender.LaneProven, s.subs[1].lane, "once, it is believed at once")
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
	for range probationMost + probationSoon + 1 {
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

// What this process has seen of a subscription counts until it is recorded. Then the
// database says what all processes have seen.
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
			for _, sub := range s.subs {
				require.GreaterOrEqual(t, sub.wire, 0)
				require.GreaterOrEqual(t, sub.places, 1)
				require.LessOrEqual(t, sub.places, s.cfg.perSubscription)
				held, onWire, queued = held+sub.held, onWire+sub.wire, queued+len(sub.queue)
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

// BenchmarkSlotsNext finds nothing that may go: the shared part of the proven lane is
// taken, and each subscription has more queued.
func BenchmarkSlotsNext(b *testing.B) {
	s := newSlots(slotsConfig{places: [sender.Lanes]int{sender.LaneNew: 32, sender.LaneProven: 384, sender.LaneProbation: 96}, perSubscription: 64, prefetch: 4, hardLimit: 1024})
	for range 2 {
		for sub := range int64(336) {
			s.add(claimed(sub, sub, sender.LaneProven))
		}
		drive(s)
	}
	require.Equal(b, 336, s.wire)
	require.Len(b, s.lane[sender.LaneProven].ready, 336)
	for b.Loop() {
		if s.next() != nil {
			b.Fatal("there was none")
		}
	}
}

// BenchmarkSlots takes deliveries of as many events, about as many objects, from the
// claim to the record.
func BenchmarkSlots(b *testing.B) {
	s := newSlots(slotsConfig{places: [sender.Lanes]int{sender.LaneNew: 32, sender.LaneProven: 384, sender.LaneProbation: 96}, perSubscription: 64, prefetch: 4, hardLimit: 1024})
	attempts := make([]*attempt, 1024)
	var wire []*attempt
	event := int64(0)
	for b.Loop() {
		for i := range attempts {
			event++
			attempts[i] = about(event%16, sender.LaneProven, strconv.FormatInt(event, 10), event, 1)
		}
		for _, a := range attempts {
			s.add(a)
		}
		for {
			for a := s.next(); a != nil; a = s.next() {
				wire = append(wire, a)
			}
			if len(wire) == 0 {
				break
			}
			a := wire[0]
			wire = wire[1:]
			s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
			s.recorded(a)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(event), "ns/delivery")
}
