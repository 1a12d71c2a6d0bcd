package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// maxTries is the number of tries in the suite's schedule.
const maxTries = 5

// retryDelay is the schedule's delay after try n.
func retryDelay(n int) time.Duration { return time.Duration(n) * 10 * time.Minute }

// decide is the suite's policy. It is too simple to be useful, but its answer depends
// on every argument.
func decide(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	if r.Class == sender.ClassNone {
		h = sender.Health{Lane: sender.LaneProven, LastSuccess: now.Truncate(time.Minute)}
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}
	if r.Class != sender.ClassInterrupted {
		if h.Streak++; h.Streak == 1 {
			h.FailingSince = now
		}
		h.LastFailure = now
		h.Lane = sender.LaneProbation
	}
	switch {
	case l.Single && (r.Class != sender.ClassInterrupted || l.Tries >= maxTries):
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	case l.Tries >= maxTries:
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	case r.Class == sender.ClassInterrupted:
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}
	return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(retryDelay(l.Tries)), Health: h}
}
