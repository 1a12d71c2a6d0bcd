// Package turns shares the slots of a claim between those that have work due. Nobody
// is left out for ever: who was served goes to the tail, which is the caller's part.
package turns

// perTurn is how many deliveries one may be given in a turn when more have work than
// there are slots: what a turn costs is shared by so many.
const perTurn = 8

// few are given a turn all at once.
const few = 32

// AtOnce is how many are served in a claim of so many slots: as many as there are
// slots while that is few, and fewer, with more for each, beyond.
func AtOnce(slots int) int { return max(min(slots, few), (slots+perTurn-1)/perTurn) }

// Share is a fair part of slots for the first of so many that are still to be served,
// rounded up; for one behind them, all.
func Share(slots, of int) int { return (slots + max(of, 1) - 1) / max(of, 1) }

// Room is what the rooms say of a number, or otherwise.
func Room(no int64, rooms map[int64]int, otherwise int) int {
	if room, ok := rooms[no]; ok {
		return room
	}
	return otherwise
}
