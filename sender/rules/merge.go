package rules

import (
	"slices"
	"time"
)

// What is admitted and not claimed is counted, row by row, so it is not counted all the
// time: hundreds of replays may wait for endpoints that are slow.
const (
	leastReplayPause = 20 * time.Millisecond
	mostReplayPause  = 5 * time.Second
)

// ReplayPause is how long to leave a replay alone that waits for its deliveries to be
// claimed, and has waited for so long already: as long again, from 20 ms up to 5 s.
func ReplayPause(waited time.Duration) time.Duration {
	return min(max(waited, leastReplayPause), mostReplayPause)
}

// leastReplayLook is how many deliveries a step reads of a replay at least, in case that its
// filter selects few of them.
const leastReplayLook = 50

// ReplayLook is how many deliveries a step reads next of a replay that may admit so many more:
// these, and the one that tells whether they are the last ones. It has looked at some in vain,
// and looks at up to most of them in all. A replay whose rate grants a few in each step must
// not read a thousand for them.
func ReplayLook(admits, looked, most int) int {
	return min(max(admits+1, 3*looked, leastReplayLook), most-looked)
}

// leastAhead is how many deliveries of a subscription are read at least: of many, reading
// few of each would get nowhere where one of them has most.
const leastAhead = 50

// Ahead is how many deliveries to read of each of some subscriptions, of whose all so
// many are looked at.
func Ahead(limit, subscriptions int) int { return max(leastAhead, limit/max(1, subscriptions)) }

// Merge puts the next deliveries of subscriptions, up to ahead of each, into one order,
// up to a limit. What comes after the last one that was read of a subscription waits,
// since others of that may come before it. more: there may be others behind these.
func Merge[T any](of [][]T, ahead, limit int, compare func(a, b T) int) (merged []T, more bool) {
	var bound []T // up to here all were read
	for _, list := range of {
		merged = append(merged, list...)
		if len(list) < ahead {
			continue
		}
		more = true
		if last := list[len(list)-1]; len(bound) == 0 || compare(last, bound[0]) < 0 {
			bound = []T{last}
		}
	}
	slices.SortFunc(merged, compare)
	n := len(merged)
	for len(bound) > 0 && compare(merged[n-1], bound[0]) > 0 {
		n--
	}
	return merged[:min(n, limit)], more || n > limit
}
