package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
)

// If no due delivery has room, a turn keeps its place: to move it in every claim would
// cost as much as deliveries do. Once there is room it is served at once.
func TestTurnsWithoutRoomStand(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "turns.db"), "")
	s := newStore(t, db, time.Now)
	publish(t, s, 400, 100, register(t, s, 2))
	expandAll(t, s)
	var claimed []dispatch.Claimed
	var full *dispatch.Target
	next := func(room int) map[string]int {
		b := batchOf(claimed, 20)
		if full != nil {
			b.Claim.SubscriptionRoom = map[int64]int{full.SubscriptionNo: room}
		}
		_, c, err := s.Step(t.Context(), dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		claimed = c.Claimed
		of := map[string]int{}
		for i := range claimed {
			of[claimed[i].Target.Subscription]++
		}
		return of
	}
	turn := func() (turn int64) {
		require.NoError(t, db.QueryRow(`SELECT turn FROM surehook_turns WHERE subscriber = ? AND next_due IS NOT NULL ORDER BY next_due LIMIT 1`, full.SubscriberNumber).Scan(&turn))
		return turn
	}
	require.Len(t, next(0), 2)
	for i := range claimed {
		if claimed[i].Target.Subscription == "wsub_0" {
			full = claimed[i].Target
		}
	}
	next(0) // the recorded result puts it into another lane
	stood := turn()
	for range 3 {
		require.Equal(t, map[string]int{"wsub_1": 20}, next(0))
		require.Equal(t, stood, turn())
	}
	require.Positive(t, next(20)["wsub_0"])
}
