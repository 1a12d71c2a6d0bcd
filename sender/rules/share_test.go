package rules_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender/rules"
)

func TestAtOnce(t *testing.T) {
	for slots, want := range map[int]int{0: 0, 1: 1, 31: 31, 32: 32, 33: 32, 256: 32, 257: 33, 800: 100} {
		require.Equal(t, want, rules.AtOnce(slots), "%d slots", slots)
	}
}

func TestRoom(t *testing.T) {
	rooms := map[int64]int{1: 0, 2: 5}
	require.Equal(t, 0, rules.Room(1, rooms, 9), "no room is not the same as nothing said")
	require.Equal(t, 5, rules.Room(2, rooms, 9))
	require.Equal(t, 9, rules.Room(3, rooms, 9))
}

// Takers that take their shares one behind the other use no more than the total. A taker
// with enough to do gets at least an equal part. If all takers have enough to do, nothing
// is left, and no taker gets more than one above another.
func TestPropertySharesAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 600).Draw(t, "slots")
		work := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 80).Draw(t, "work")
		served := work[:min(len(work), rules.AtOnce(slots))]
		left, enough := slots, true
		var given []int
		for i, has := range served {
			takes := min(has, rules.Share(left, len(served)-i))
			require.True(t, takes == has || takes >= slots/len(served), "less than an equal part: %d", takes)
			enough = enough && has > takes
			given = append(given, takes)
			left -= takes
			require.GreaterOrEqual(t, left, 0)
		}
		if enough {
			require.Zero(t, left)
			require.LessOrEqual(t, slices.Max(given)-slices.Min(given), 1)
			require.Equal(t, slices.Max(given), given[0], "who is first gets more")
		}
		require.Equal(t, left, rules.Share(left, 0), "one behind them gets what is left")
	})
}
