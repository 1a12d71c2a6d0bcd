package rules_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender/rules"
)

// All deliveries are met once, in order, however they are spread over the subscriptions.
func TestPropertyMergeMeetsAllInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := map[int]int{} // the subscription of each
		for no := range rapid.IntRange(0, 400).Draw(t, "deliveries") {
			all[no] = min(rapid.IntRange(0, 9).Draw(t, "of"), rapid.IntRange(0, 9).Draw(t, "or of"))
		}
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		ahead := rules.Ahead(limit, 10)
		at, met := -1, []int{}
		for more := true; more; {
			of := make([][]int, 10)
			for no := at + 1; no < len(all); no++ {
				if s := all[no]; len(of[s]) < ahead {
					of[s] = append(of[s], no)
				}
			}
			var found []int
			found, more = rules.Merge(of, ahead, limit, cmp.Compare[int])
			require.True(t, len(found) > 0 || !more, "it gets on")
			require.LessOrEqual(t, len(found), limit)
			for _, no := range found {
				at = no
				met = append(met, no)
			}
		}
		require.Len(t, met, len(all))
		require.True(t, slices.IsSorted(met))
	})
}

// One subscription may have more behind its 4. So what the others have behind it waits.
func TestMergeStopsWhereMoreMayCome(t *testing.T) {
	of := [][]int{{1, 4}, {2, 9}, {3, 5}}
	for range of {
		merged, more := rules.Merge(of, 2, 10, cmp.Compare[int])
		require.Equal(t, []int{1, 2, 3, 4}, merged)
		require.True(t, more)
		of = append(of[1:], of[0]) // their order does not matter
	}

	merged, more := rules.Merge(of, 3, 10, cmp.Compare[int]) // they are all
	require.Equal(t, []int{1, 2, 3, 4, 5, 9}, merged)
	require.False(t, more)
}

func TestBoundsOfReplays(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{0: 20 * time.Millisecond, time.Second: time.Second, time.Minute: 5 * time.Second} {
		require.Equal(t, want, rules.ReplayPause(waited))
	}
	require.Equal(t, []int{1000, 250, 50}, []int{rules.Ahead(1000, 0), rules.Ahead(1000, 4), rules.Ahead(1000, 100)})
}

// A step reads no more of a replay than it may look at, gets on, and reads little in vain: the
// deliveries that the replay may admit, or at most four times as many as it has looked at.
func TestPropertyReplayLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		admits, most := rapid.IntRange(1, 1000).Draw(t, "admits"), rapid.IntRange(1, 1000).Draw(t, "most")
		reads := 0
		for looked := 0; looked < most; reads++ {
			n := rules.ReplayLook(admits, looked, most)
			require.Positive(t, n)
			require.LessOrEqual(t, n, most-looked)
			require.LessOrEqual(t, n, max(50, admits+1, 3*looked))
			require.GreaterOrEqual(t, n, min(admits, most-looked))
			looked += n
		}
		require.LessOrEqual(t, reads, 4)
	})
}
