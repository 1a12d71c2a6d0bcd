package sqlite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/history"
)

// A query with a time looks at no event of that time or later, however little later.
func TestListsBeginAtTheirTime(t *testing.T) {
	ctx, clock := t.Context(), newClock()
	s := newStore(t, open(t, path(t), fit), clock.now)
	owners := register(t, s, 3)
	publish(t, s, 1, 0, owners)
	clock.advance(time.Second)
	later := clock.now()
	publish(t, s, history.MaxExamined, 0, owners)
	expandAll(t, s)
	deliveries, next, err := s.Deliveries(ctx, history.DeliveryQuery{EventType: "subscriber.*", Until: later})
	require.NoError(t, err)
	require.Len(t, deliveries, 1)
	require.Empty(t, next)
	events, next, err := s.Events(ctx, history.EventQuery{Type: "subscriber.*", Until: later})
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Empty(t, next)
}
