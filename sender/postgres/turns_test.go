package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Where many have work, a claim gives a few of them a turn that is worth its cost, also
// while what was just recorded is due again; and all have theirs in the end.
func TestTurnsStayWhole(t *testing.T) {
	const owners, slots = 100, 64
	for name, each := range map[string]int{"subscribers": 1, "subscriptions of one": owners} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, owners/each, each, sender.Settings{})
			publish(t, s, 40*owners/each, owners/each)
			expandAll(t, s)
			var claimed []sender.Claimed
			seen := map[string]bool{}
			for range 16 {
				claimed = exchange(t, s, batchOf(claimed, slots)).Claimed
				require.GreaterOrEqual(t, len(claimed), slots, "in a lane")
				of := claimedOf(claimed)
				require.LessOrEqual(t, 2*len(of), len(claimed), "a turn is more than one delivery")
				for id := range of {
					seen[id] = true
				}
			}
			require.Len(t, seen, owners)
		})
	}
}
