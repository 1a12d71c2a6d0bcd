package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
)

// An accepted retention keeps the contract: dead letters can be sent again, the receivers
// remember every event that is sent, and a record never outlives its event.
func TestPropertyRetentionIsOneContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := func(label string, some ...int) time.Duration {
			return time.Duration(rapid.SampledFrom(some).Draw(t, label)) * 24 * time.Hour
		}
		// Most values are valid, so that an invalid retention is wrong in one place.
		r := sender.Retention{
			Reach: days("reach", 0, 7, 27, 29), Receivers: days("receivers", 0, 28, 31, 33, 60), Delivered: days("delivered", 0, 20, 60, 90),
			Events: days("events", 0, 30, 60, 90), DeadLetters: days("dead letters", 0, 20, 28, 365),
		}
		if rapid.Bool().Draw(t, "for ever") {
			r.DeadLetters = -1
		}
		horizon := days("horizon", 0, 3, 4, 28)
		full := r.WithDefaults()
		want := full.Reach >= horizon && full.Receivers >= full.Reach+horizon+dedup.RetentionMargin &&
			full.Delivered >= full.Reach && full.Events >= full.Delivered && (full.DeadLetters < 0 || full.DeadLetters >= full.Reach)
		require.Equal(t, want, len(full.Problems(horizon)) == 0, "%+v, horizon %v: %v", full, horizon, full.Problems(horizon))
		if !want {
			return
		}
		oldest, goes := full.NotBefore(propertyTime), past(full, propertyTime)
		require.False(t, goes.Events.After(oldest), "an event is gone that may be redelivered")
		require.False(t, goes.Delivered.After(oldest), "a record is gone that may be redelivered")
		require.False(t, goes.Events.After(goes.Delivered), "a record outlives its event")
		require.False(t, goes.DeadLetters.After(oldest), "a dead letter is gone that may be replayed")
		require.Equal(t, full.DeadLetters < 0, goes.DeadLetters.IsZero())
	})
}

// Each kind of record goes by a time of its own, and is counted by itself.
func TestKindsOfRecords(t *testing.T) {
	ago := func(h time.Duration) time.Time { return propertyTime.Add(-h * time.Hour) }
	require.Equal(t, PruneParams{
		Delivered: ago(1), Events: ago(2), Objects: ago(3), DeadLetters: ago(4), Notices: ago(5), Rollups: ago(6), SubscriptionRollups: ago(7),
	}, past(sender.Retention{
		Delivered: time.Hour, Events: 2 * time.Hour, Objects: 3 * time.Hour, DeadLetters: 4 * time.Hour, Notices: 5 * time.Hour, Rollups: 6 * time.Hour, SubscriptionRollups: 7 * time.Hour,
	}, propertyTime))
	forEver := past(sender.Retention{DeadLetters: -1}, propertyTime)
	require.Zero(t, forEver.DeadLetters)
	require.Zero(t, forEver.Objects)
	require.Equal(t, Pruned{11, 22, 33, 44, 55, 66, 77, 88, 99, "next"}, Pruned{1, 2, 3, 4, 5, 6, 7, 8, 9, "last"}.plus(Pruned{10, 20, 30, 40, 50, 60, 70, 80, 90, "next"}))
}
