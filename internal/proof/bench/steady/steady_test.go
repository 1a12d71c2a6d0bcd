package steady

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each second of each run has the same number of events.
func TestTimes(t *testing.T) {
	upTo := func(rate int, end time.Duration) (all []time.Duration) {
		for at := range times(rate) {
			if at >= end {
				break
			}
			all = append(all, at)
		}
		return all
	}
	const end = Begun + 5*time.Second
	for _, rate := range []int{1, 10, 50, 200} {
		all := upTo(rate, end)
		require.True(t, slices.IsSorted(all))
		require.Equal(t, all, upTo(rate, end), "in each run")
		inSecond := map[time.Duration]int{}
		for _, at := range all {
			inSecond[at/time.Second]++
		}
		require.Equal(t, map[time.Duration]int{0: warmRate, 1: warmRate, 3: rate, 4: rate, 5: rate, 6: rate, 7: rate, 8: rate}, inSecond)
	}
	var none []time.Duration
	for at := range times(0) { // it ends by itself
		none = append(none, at)
	}
	require.Len(t, none, int(warmRate*warm/time.Second))
}
