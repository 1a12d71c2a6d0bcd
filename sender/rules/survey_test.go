package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

func TestPreviewNamesTheLargestParts(t *testing.T) {
	var s rules.Survey
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Zero(t, s.Preview())
	require.NoError(t, s.Within(at), "nothing is not too old")
	for i := range 12 {
		for range i + 1 {
			s.Add(replay.Candidate{Subscription: string(rune('a' + i)), Published: at.Add(time.Duration(i%5) * time.Hour)})
		}
	}
	p := s.Preview()
	require.EqualValues(t, 78, p.Count)
	require.Equal(t, at, p.Oldest)
	require.Equal(t, at.Add(4*time.Hour), p.Newest)
	require.Len(t, p.Subscriptions, 10)
	require.Equal(t, replay.Share{Subscription: "l", Count: 12}, p.Subscriptions[0])
	require.Equal(t, replay.Share{Subscription: "c", Count: 3}, p.Subscriptions[9])
	require.NoError(t, s.Within(at))
	require.NoError(t, s.Within(time.Time{}))
	require.ErrorIs(t, s.Within(at.Add(1)), sender.ErrRetention)
}
