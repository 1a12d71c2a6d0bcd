package sqlite

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// The store does not hold on to the bodies of what it has claimed.
func TestBodiesAreLetGo(t *testing.T) {
	b := newHeldBacklog(t, 100)
	b.in(func(tx *sql.Tx) error {
		if err := b.HoldSubscriptionTx(t.Context(), tx, heldID, sender.SubscriptionPaused, ""); err != nil {
			return err
		}
		return b.ResumeSubscriptionTx(t.Context(), tx, heldID, sender.Resume{}) // now it is due
	})
	var in dispatch.Batch
	in.Claim.Lease, in.Claim.Token, in.Claim.Bytes = time.Minute, 1, 1<<20
	in.Claim.Lanes[0] = dispatch.LaneParams{Slots: 60, PerSubscriber: 60, PerSubscription: 60}
	for range 2 {
		_, out, err := b.Step(t.Context(), dispatch.ExpandParams{}, in)
		require.NoError(t, err)
		require.NotEmpty(t, out.Claimed)
		for _, c := range out.Claimed {
			require.JSONEq(t, `{}`, string(c.Body))
		}
		require.Empty(t, b.bodies)
		for _, d := range b.found[:cap(b.found)] {
			require.Nil(t, d.body)
		}
	}
}
