package inbox

import (
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
)

var defaultSchedule = backoff.Exponential{Base: retryBase, Max: retryMax}

// guarded contains a panic in a Schedule of the application's own: it would end the process,
// and then each other one that takes the event over.
type guarded struct {
	backoff.Schedule
	panicked func(v any)
}

func (g guarded) Delay(attempt int) (d time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			g.panicked(v)
			d = defaultSchedule.Delay(attempt)
		}
	}()
	return g.Schedule.Delay(attempt)
}

// decide returns whether an event whose attempt has failed is tried again, and when, or
// is given up.
func decide(policy backoff.Policy, maxAttempts int, c Claim, reason receiver.Reason, chance float64) (after time.Duration, giveUp bool) {
	if c.Attempt >= maxAttempts {
		return 0, true
	}
	state := backoff.State{Attempt: c.Attempt, Age: c.Age}
	switch reason {
	case receiver.ReasonDatabase, receiver.ReasonConflict, receiver.ReasonCommit, receiver.ReasonInWork:
		// The event is not known to be at fault, so its age says nothing about it.
		state.Age = 0
	}
	after, retry := policy.Next(state, chance)
	return after, !retry
}
