package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
)

// With more subscriptions than fit, those that were used last stay.
func TestSubscriptionCacheForgetsTheOldest(t *testing.T) {
	ts := newSubscriptionCache()
	remembered := func(no int64) *dispatch.Target {
		return ts.remember(&cachedTarget{Target: dispatch.Target{SubscriptionNo: no}, version: 1}, "{}")
	}
	first, second := remembered(1), remembered(2)
	for no := range int64(subscriptionCacheLimit - 1) {
		remembered(100 + no)
		if no%1000 == 0 {
			require.Same(t, first, remembered(1))
		}
	}
	require.Same(t, first, remembered(1))
	require.NotSame(t, second, remembered(2))
	require.Equal(t, subscriptionCacheLimit, ts.by.Len())
}
