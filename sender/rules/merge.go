package rules

import (
	"slices"
	"time"
)

// Deliveries that are admitted and not claimed are counted row by row. So they are not
// counted all the time: hundreds of replays may wait for endpoints that are slow.
const (
	leastReplayPause = 20 * time.Millisecond
	mostReplayPause  = 5 * time.Second
)

// ReplayPause is how long to leave a replay alone that waits for its deliveries to be
// claimed. It is the time for which the replay has waited already, from 20 ms up to 5 s.
func ReplayPause(waited time.Duration) time.Duration {
	return min(max(waited, leastReplayPause), mostReplayPause)
}

// leastReplayLook is how many deliveries a step reads of a replay at least, in case that its
// filter selects few of them.
const leastReplayLook = 50

// ReplayLook is how many deliveries a step reads next of a replay that may admit admits of
// them. One more tells whether these are the last ones. The step has looked at looked
// deliveries in vain, and looks at up to most in all. A replay whose rate grants a few in
// each step must not read a thousand for them.
func ReplayLook(admits, looked, most int) int {
	return min(max(admits+1, 3*looked, leastReplayLook), most-looked)
}

// leastAhead is how many deliveries of a subscription are read at least. If there are many
// subscriptions and one has most deliveries, reading few of each would get nowhere.
const leastAhead = 50

// Ahead is how many deliveries to read of each of some subscriptions, if limit of them are
// looked at in all.
func Ahead(limit, subscriptions int) int { return max(leastAhead, limit/max(1, subscriptions)) }

// Merge puts the next deliveries of subscriptions, up to ahead of each, into one order, up
// to a limit. It leaves out a delivery behind the last one that was read of another
// subscription, since further ones of that subscription may come before it. more tells
// that there may be others behind the merged ones.
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
