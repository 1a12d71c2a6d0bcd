package rules

// A claim's slots are shared between those that have work due. Nobody is left out for
// ever: who was served goes to the tail, which is the store's part.

// perTurn is how many deliveries one may be given in a turn when more have work than
// there are slots: what a turn costs is shared by so many.
const perTurn = 8

// few are given a turn all at once.
const few = 32

// AtOnce is how many subscribers, or subscriptions of one, are served in a claim of so many
// slots: as many as there are slots while that is few, and fewer, with more for each,
// beyond.
func AtOnce(slots int) int { return max(min(slots, few), (slots+perTurn-1)/perTurn) }

// Share is a fair part of slots for the first of so many that are still to be served,
// rounded up; for one behind them, all. What somebody leaves of it goes to those behind:
// if each takes no more than it is given, all together take no more than there is.
func Share(slots, of int) int { return (slots + max(of, 1) - 1) / max(of, 1) }

// Room is how many more deliveries a subscriber or a subscription may be given, by its
// number: what the rooms say, as in dispatch.ClaimParams.SubscriptionRoom, or otherwise.
func Room(no int64, rooms map[int64]int, otherwise int) int {
	if room, ok := rooms[no]; ok {
		return room
	}
	return otherwise
}
