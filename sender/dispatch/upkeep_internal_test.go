package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Slots that a replay was given and did not use are there for the next one. The slots of a
// later step take their place.
func TestUnusedSlotsOfAReplayStay(t *testing.T) {
	p := &pump{}
	p.upkeep = newUpkeep(p)
	p.leaveSpare(10, databaseClock{})
	taken := p.takeSpare()
	require.Zero(t, p.takeSpare().slots, "they are taken")
	p.keepSpare(taken, 4)
	taken = p.takeSpare()
	require.Equal(t, 6, taken.slots)

	p.leaveSpare(3, databaseClock{})
	p.keepSpare(taken, 0)
	require.Equal(t, 3, p.takeSpare().slots)
}
