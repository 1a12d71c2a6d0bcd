package sender_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

func TestRecent(t *testing.T) {
	var r sender.Recent
	require.Empty(t, r.Outcomes())
	all := []sender.Outcome{sender.OutcomeSucceeded, sender.OutcomeFailed, sender.OutcomeDeadLettered, sender.OutcomeSucceeded}
	for n, o := range all {
		r = r.Add(o)
		require.Equal(t, all[:n+1], r.Outcomes())
	}
	for range sender.RecentOutcomes {
		require.Equal(t, sender.OutcomeSucceeded, r.Outcomes()[len(r.Outcomes())-1])
		r = r.Add(sender.OutcomeSucceeded)
		require.LessOrEqual(t, len(r.Outcomes()), sender.RecentOutcomes)
	}
	require.NotContains(t, r.Outcomes(), sender.OutcomeFailed, "it was too long ago")
	require.Len(t, r.Outcomes(), sender.RecentOutcomes)
}
