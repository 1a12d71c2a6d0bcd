package sqlite_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
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

// Each process has rollups of its own, which are read as one.
func TestRollupsOfSeveralProcesses(t *testing.T) {
	ctx, clock := t.Context(), newClock()
	db := open(t, path(t), fit)
	stores := []interface {
		dispatch.Store
		history.Store
	}{newStore(t, db, clock.now), newStore(t, db, clock.now)}
	first := newStore(t, db, clock.now)
	owners := register(t, first, 1)
	minute := clock.now().Truncate(time.Minute)
	for i := range 4 {
		publish(t, first, 1+i, 0, owners)
		_, _, err := stores[i%2].Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
		require.NoError(t, err)
	}
	clock.advance(time.Minute)
	publish(t, first, 5, 0, owners)
	_, _, err := stores[0].Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	for _, s := range stores {
		all, err := s.Rollups(ctx, minute, minute.Add(time.Hour))
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, []any{minute.UTC(), int64(10), int64(10), int64(10)}, []any{all[0].Minute, all[0].Published, all[0].Deliveries, all[0].Backlog})
		require.Equal(t, []any{minute.Add(time.Minute).UTC(), int64(5), int64(10)}, []any{all[1].Minute, all[1].Published, all[1].Backlog})
	}
	require.Equal(t, 3, count(t, db, `SELECT count(*) FROM surehook_rollups`), "a row for each minute and process")
}
