package postgres_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A version that comes out of its line after a later one, in a step that claims others of its
// subscription, is not passed over.
func TestWhatComesOutLateIsClaimed(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{Order: sender.OrderObject})
	var drafts []sender.Draft
	for i := range 10 {
		d := draft(subscriberID(0))
		d.Object.ID = strconv.Itoa(max(i, 1)) // two of one object, and one of each other
		drafts = append(drafts, d)
	}
	require.NoError(t, publishInTx(t.Context(), s, drafts...))
	expandAll(t, s)
	// Now the second is out, and the first behind it.
	p.exec(t, `UPDATE {}.surehook_pending SET event = f.position, no = f.event FROM (SELECT position, event FROM {}.surehook_feed ORDER BY position LIMIT 1 OFFSET 1) f
		WHERE surehook_pending.event = (SELECT min(position) FROM {}.surehook_feed)`)
	p.exec(t, `UPDATE {}.surehook_lines SET preceded = true WHERE event = (SELECT position FROM {}.surehook_feed ORDER BY position LIMIT 1 OFFSET 1)`)
	p.linedUp(t)
	first := exchange(t, s, batchOf(nil, 2)).Claimed
	require.Equal(t, drafts[1].ID, first[0].Event.ID)
	second := exchange(t, s, batchOf(first, 2)).Claimed
	require.Len(t, second, 2)
	exchange(t, s, batchOf(second, 0))
	drainAll(t, s)
	p.delivered(t)
}
