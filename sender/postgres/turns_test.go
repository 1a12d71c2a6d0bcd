package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// If no due delivery has room, a turn keeps its place: to move it in every claim would
// cost as much as deliveries do. But it does not fall far behind, among dead rows. Once
// there is room it is served at once.
func TestTurnsWithoutRoomStand(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 2, 1, sender.Settings{})
	publish(t, s, 400, 2)
	expandAll(t, s)
	claimed := exchange(t, s, batchOf(nil, 20)).Claimed
	var full *dispatch.Target
	for _, c := range claimed {
		if c.Target.Subscription == subscriptionID(0, 0) {
			full = c.Target
		}
	}
	require.NotNil(t, full)
	next := func(room int) (of map[string]int) {
		b := batchOf(claimed, 20)
		b.Claim.SubscriptionRoom = map[int64]int{full.SubscriptionNo: room}
		claimed = exchange(t, s, b).Claimed
		return claimedOf(claimed)
	}
	turn := func() int {
		return p.count(t, `SELECT turn FROM {}.surehook_turns WHERE subscriber = $1 ORDER BY next_due LIMIT 1`, full.SubscriberNumber)
	}
	next(0) // the recorded result puts it into another lane
	stood := turn()
	for range 3 {
		require.Equal(t, map[string]int{subscriptionID(1, 0): 20}, next(0))
		require.Equal(t, stood, turn())
	}
	p.advance(t, 2*time.Second)
	next(0)
	require.Greater(t, turn(), stood)
	require.Positive(t, next(20)[subscriptionID(0, 0)])
}
