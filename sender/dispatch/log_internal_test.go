package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A failure begins no streak if the endpoint is not to blame for it, even beside a streak
// of one.
func TestOnlyTheEndpointsFailuresBeginAStreak(t *testing.T) {
	one := Recorded{Result: Result{Class: sender.ClassTimeout}}
	one.Decision.Health.Streak = 1
	require.True(t, one.beginsStreak())
	for name, change := range map[string]func(r *Recorded){
		"a later failure":       func(r *Recorded) { r.Decision.Health.Streak = 2 },
		"a lost process":        func(r *Recorded) { r.Result.Class = sender.ClassInterrupted },
		"our own network":       func(r *Recorded) { r.Result.OwnNetwork = true },
		"the operator's proxy":  func(r *Recorded) { r.Result.ProxyFailed = true },
		"an attempt was spared": func(r *Recorded) { r.Decision.Uncounted = true },
	} {
		r := one
		change(&r)
		require.False(t, r.beginsStreak(), name)
	}
}
