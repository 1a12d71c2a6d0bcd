package rules

// A claim's slots are shared between those that have work due. Nobody is left out for ever,
// since a store moves those that were served to the tail.

// perTurn is how many deliveries one may be given in a turn when more have work than there
// are slots. They share the cost of the turn.
const perTurn = 8

// few are served at most while each gets less than perTurn.
const few = 32

// AtOnce is how many subscribers, or subscriptions of one, are served in a claim: as many
// as there are slots, up to few. With more slots each of them gets more, up to perTurn.
// Only beyond that are more served.
func AtOnce(slots int) int { return max(min(slots, few), (slots+perTurn-1)/perTurn) }

// Share is how many of the remaining slots the next one may have, rounded up, while of are
// still to be served. The last one may have all of them. Slots of its share that one does
// not take go to those behind it. If each takes no more than its share, all together take
// no more than there are.
func Share(slots, of int) int { return (slots + max(of, 1) - 1) / max(of, 1) }

// Room is how many more deliveries a subscriber or a subscription may be given, by its
// number: its entry in rooms, as in dispatch.ClaimParams.SubscriptionRoom, or otherwise if
// it has none.
func Room(no int64, rooms map[int64]int, otherwise int) int {
	if room, ok := rooms[no]; ok {
		return room
	}
	return otherwise
}
