package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestSlotsSubscriberTakesHalfOfALane(t *testing.T) {
	s := testSlots()
	for sub := int64(1); sub <= 300; sub++ { // one subscriber with three hundred proven subscriptions
		s.add(claimed(sub, 1, sender.LaneProven))
	}
	require.Len(t, drive(s), 12)
	p := s.claim().Lanes[sender.LaneProven]
	require.Equal(t, 48-300, p.SubscriberRoom[1])
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

// An idle subscriber is claimed for and begins at once, however much the subscribers at
// work have earned and hold.
func TestSlotsIdleOnesHaveRoom(t *testing.T) {
	s := testSlots()
	const shared = 4 * 24 * 7 / 8
	for i := range shared {
		p := s.claim().Lanes[sender.LaneProven]
		require.Equal(t, shared-i, p.Slots, "no claim takes what is for others")
		if i > 0 {
			require.Equal(t, 48-(i+7)/8, p.SubscriberRoom[1], "half of the lane, less what it holds")
		}
		sub := int64(1 + i%8)
		s.add(claimed(sub, sub, sender.LaneProven))
	}
	wire := drive(s)
	require.Len(t, wire, 24-24/idleShare, "the last places are for others")
	idle := claimed(9, 9, sender.LaneProven)
	second := claimed(9, 9, sender.LaneProven)
	s.add(idle)
	s.add(second)
	for _, a := range []*attempt{idle, second} {
		require.Equal(t, []*attempt{a}, drive(s), "one at a time has a place of those")
		s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
		s.recorded(a)
	}

	p := s.claim()
	require.Equal(t, 4*24-shared, p.Lanes[sender.LaneProven].Slots)
	for sub := int64(1); sub <= 8; sub++ {
		require.Equal(t, 0, p.Lanes[sender.LaneProven].SubscriberRoom[sub], "it holds something")
	}
	require.NotContains(t, p.Lanes[sender.LaneProven].SubscriberRoom, int64(9))

	s.finished(wire[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Len(t, drive(s), 1, "those at work go on with what is theirs")

	for subscribers, room := range map[int]int{mostHolding: 0, mostHolding + 1: 48*4 - 2} { // very many hold little
		s = testSlots()
		s.cfg.places[sender.LaneProven] = 96
		for i := range 4 * 96 * 7 / 8 {
			sub := int64(i % subscribers)
			s.add(claimed(sub, sub, sender.LaneProven))
		}
		require.Equal(t, room, s.claim().Lanes[sender.LaneProven].SubscriberRoom[0])
	}
}
