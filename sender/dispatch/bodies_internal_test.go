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
	require.EqualValues(t, 40, s.claim().Bytes)
	s.add(second)
	require.EqualValues(t, 40, s.claim().Bytes)
	require.Same(t, &first.Body[0], &second.Body[0], "they share it")
	s.add(bodied(8, 3, sender.LaneProven, 60))
	p := s.claim()
	for l := range p.Lanes {
		require.Zero(t, p.Lanes[l].Slots, "nothing is claimed until there is room")
	}
	require.Len(t, drive(s), 3)
	s.finished(first, sender.ClassNone, 0, 1)
	require.Zero(t, s.claim().Lanes[sender.LaneProven].Slots, "the other one still needs it")
	s.slowed(second)
	s.finished(second, sender.ClassTimeout, 2, 1)
	require.EqualValues(t, 40, s.claim().Bytes)
	require.NotZero(t, s.claim().Lanes[sender.LaneProven].Slots)
}

// Slow and new subscriptions leave half of the room for bodies to the others.
func TestSlotsBodiesOfSlowOnes(t *testing.T) {
	s := testSlots()
	s.cfg.bodyBytes = 100
	s.add(bodied(1, 1, sender.LaneProbation, 60))
	p := s.claim()
	require.EqualValues(t, 40, p.Bytes)
	require.Zero(t, p.Lanes[sender.LaneProbation].Slots)
	require.NotZero(t, p.Lanes[sender.LaneNew].Slots)
	require.NotZero(t, p.Lanes[sender.LaneProven].Slots)
}
