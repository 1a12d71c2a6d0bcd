package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// With more subscriptions than fit, those that were used last stay.
func TestTargetsForgetTheOldest(t *testing.T) {
	ts := newTargets()
	remembered := func(no int64) *sender.Target {
		return ts.remember(&target{Target: sender.Target{SubscriptionNo: no}, version: 1}, "{}")
	}
	first, second := remembered(1), remembered(2)
	for no := range int64(targetsLimit - 1) {
		remembered(100 + no)
		if no%1000 == 0 {
			require.Same(t, first, remembered(1))
		}
	}
	require.Same(t, first, remembered(1))
	require.NotSame(t, second, remembered(2))
	require.Equal(t, targetsLimit, ts.by.Len())
}

func TestPlacesForgetTheOldest(t *testing.T) {
	p := newPlaces()
	here := pgtype.TID{BlockNumber: 1, OffsetNumber: 1, Valid: true}
	remember(&p, p.heads, []int64{1, 2}, []pgtype.TID{here, here})
	for no := range int64(placesLimit - 1) {
		remember(&p, p.heads, []int64{100 + no}, []pgtype.TID{here})
		if no%1000 == 0 {
			placesOf(&p, p.heads, []int64{1})
		}
	}
	require.Equal(t, []pgtype.TID{here, {Valid: true}}, placesOf(&p, p.heads, []int64{1, 2}))
}
