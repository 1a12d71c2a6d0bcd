package sender

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// bodied is a claimed delivery of an event with a body of so many bytes.
func bodied(event, subscription int64, lane Lane, size int) *attempt {
	a := claimed(subscription, subscription, lane)
	a.Key, a.Body = DeliveryKey{event, subscription}, make([]byte, size)
	return a
}

// A body counts while any of its event's deliveries is held, and once.
func TestSlotsCountBodies(t *testing.T) {
	s := testSlots()
	require.Zero(t, s.claim().Bytes, "there is no bound")
	s.cfg.bodyBytes = 100
	first, second := bodied(7, 1, LaneProven, 60), bodied(7, 2, LaneProven, 60)
	s.add(first)
	require.EqualValues(t, 40, s.claim().Bytes)
	s.add(second)
	require.EqualValues(t, 40, s.claim().Bytes)
	require.Same(t, &first.Body[0], &second.Body[0], "they share it")
	s.add(bodied(8, 3, LaneProven, 60))
	p := s.claim()
	for l := range p.Lanes {
		require.Zero(t, p.Lanes[l].Slots, "nothing is claimed until there is room")
	}
	require.Len(t, drive(s), 3)
	s.finished(first, ClassNone, 0, 1)
	require.Zero(t, s.claim().Lanes[LaneProven].Slots, "the other one still needs it")
	s.slowed(second)
	s.finished(second, ClassTimeout, 2, 1)
	require.EqualValues(t, 40, s.claim().Bytes)
	require.NotZero(t, s.claim().Lanes[LaneProven].Slots)
}

// Slow and new subscriptions leave half of the room for bodies to the others.
func TestSlotsBodiesOfSlowOnes(t *testing.T) {
	s := testSlots()
	s.cfg.bodyBytes = 100
	s.add(bodied(1, 1, LaneProbation, 60))
	p := s.claim()
	require.EqualValues(t, 40, p.Bytes)
	require.Zero(t, p.Lanes[LaneProbation].Slots)
	require.NotZero(t, p.Lanes[LaneNew].Slots)
	require.NotZero(t, p.Lanes[LaneProven].Slots)
}
