package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Where many have work, a claim gives a few of them a turn that is worth its cost; and
// all have theirs in the end.
func TestTurnsStayWhole(t *testing.T) {
	const owners, slots = 100, 64
	s := newStore(t, open(t, filepath.Join(t.TempDir(), "turns.db"), ""), time.Now)
	publish(t, s, 40*owners, 100, register(t, s, owners))
	expandAll(t, s)
	var claimed []sender.Claimed
	seen := map[string]bool{}
	for range 16 {
		c, err := s.RecordAndClaim(t.Context(), batchOf(claimed, slots))
		require.NoError(t, err)
		claimed = c.Claimed
		require.GreaterOrEqual(t, len(claimed), slots, "in a lane")
		of := map[string]bool{}
		for i := range claimed {
			of[claimed[i].Target.Subscription], seen[claimed[i].Target.Subscription] = true, true
		}
		require.LessOrEqual(t, 2*len(of), len(claimed), "a turn is more than one delivery")
	}
	require.Len(t, seen, owners)
}
