package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// bodied is a claimed delivery of an event with a body of size bytes.
func bodied(event, subscription int64, lane sender.Lane, size int) *attempt {
	a := claimed(subscription, subscription, lane)
	a.Key, a.Body = DeliveryKey{event, subscription}, make([]byte, size)
	return a
}

// A body counts once, and as long as any delivery of its event is held.
func TestSlotsCountBodies(t *testing.T) {
	s := testSlots()
	require.Zero(t, s.claim().Bytes, "there is no bound")
	s.cfg.bodyBytes = 100
	first, second := bodied(7, 1, sender.LaneProven, 60), bodied(7, 2, sender.LaneProven, 60)
	s.add(first)
	require.EqualValues(t, 20, s.claim().Bytes, "half of what is left")
	s.add(second)
	require.EqualValues(t, 20, s.claim().Bytes)
	require.Same(t, &first.Body[0], &second.Body[0], "they share it")
	s.add(bodied(8, 3, sender.LaneProven, 60))
	p := s.claim()
	for l := range p.Lanes {
		require.Zero(t, p.Lanes[l].Slots, "nothing is claimed until there is room")
	}
	require.Len(t, drive(s), 3)
	s.finished(first, sender.ClassNone, 0, 1)
	require.Nil(t, first.held, "its result waits without the body")
	require.Zero(t, s.claim().Lanes[sender.LaneProven].Slots, "the other one still needs it")
	s.slowed(second)
	s.finished(second, sender.ClassTimeout, 2, 1)
	require.EqualValues(t, 20, s.claim().Bytes)
	require.NotZero(t, s.claim().Lanes[sender.LaneProven].Slots)
	s.add(bodied(9, 4, sender.LaneProven, 40))
	require.Zero(t, s.claim().Lanes[sender.LaneProven].Slots, "there is no room at all")
}

// Slow and new subscriptions leave half of the room for bodies to the others.
func TestSlotsBodiesOfSlowOnes(t *testing.T) {
	s := testSlots()
	s.cfg.bodyBytes = 100
	s.add(bodied(1, 1, sender.LaneProbation, 60))
	p := s.claim()
	require.EqualValues(t, 20, p.Bytes)
	require.Zero(t, p.Lanes[sender.LaneProbation].Slots)
	require.NotZero(t, p.Lanes[sender.LaneNew].Slots)
	require.NotZero(t, p.Lanes[sender.LaneProven].Slots)
}

// While memory is short, one claim in eight is for probation alone, unless its bodies take an
// eighth of the memory.
func TestSlotsBodiesLeaveRoomForProbation(t *testing.T) {
	s := testSlots()
	s.cfg.bodyBytes = 100
	alone := func() (n int) {
		for range 2 * probationTurn {
			p := s.claim()
			if p.Lanes[sender.LaneProven].Slots == 0 {
				require.Zero(t, p.Lanes[sender.LaneNew].Slots)
				require.NotZero(t, p.Lanes[sender.LaneProbation].Slots)
				n++
			}
		}
		return n
	}
	s.add(bodied(1, 1, sender.LaneProven, 49))
	require.Zero(t, alone(), "there is room")
	s.add(bodied(2, 2, sender.LaneProven, 1))
	require.Equal(t, 2, alone())
	s.add(bodied(3, 3, sender.LaneProbation, 11))
	require.Equal(t, 2, alone())
	s.add(bodied(4, 4, sender.LaneProbation, 1))
	require.Zero(t, alone())
}

// A subscriber gets half of the room for bodies that the others leave, in however many
// claims and subscriptions.
func TestSlotsBodiesOfASubscriber(t *testing.T) {
	s := testSlots()
	s.cfg.bodyBytes = 100
	held := func(event, subscription, subscriber int64, size int) {
		a := bodied(event, subscription, sender.LaneProven, size)
		a.Target.SubscriberNumber = subscriber
		s.add(a)
	}
	barred := func(subscriber int64) bool {
		for _, l := range s.claim().Lanes {
			if room, ok := l.SubscriberRoom[subscriber]; !ok || room > 0 {
				return false
			}
		}
		return true
	}
	held(1, 11, 1, 30)
	require.False(t, barred(1))
	held(2, 12, 1, 20)
	require.True(t, barred(1), "it has half")
	held(1, 21, 2, 30)
	require.False(t, barred(2), "the body that it shares counts for the first")
	held(3, 21, 2, 25)
	require.True(t, barred(2), "and it half of the rest")
	require.EqualValues(t, 13, s.claim().Bytes)
	require.NotZero(t, s.claim().Lanes[sender.LaneProven].Slots, "there is room for a third one")
	for _, a := range s.takeQueues(true) {
		s.forget(a)
	}
	require.Empty(t, s.claim().Lanes[sender.LaneProven].SubscriberRoom)
}
