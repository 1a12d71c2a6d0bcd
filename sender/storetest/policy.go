package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// maxTries is the number of tries in the suite's schedule.
const maxTries = 5

// retryDelay is the schedule's delay after try n.
func retryDelay(n int) time.Duration { return time.Duration(n) * 10 * time.Minute }

// decide is the suite's policy. It is too simple to be useful, but its answer depends
// on every argument.
func decide(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
	if r.Class == sender.ClassNone {
		h = sender.Health{Lane: sender.LaneProven, LastSuccess: now.Truncate(time.Minute)}
		return sender.Decision{Status: sender.StatusDelivered, Health: h}
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
		return sender.Decision{Status: sender.StatusDelivered, Health: h}
	case l.Tries >= maxTries:
		return sender.Decision{Status: sender.StatusDeadLettered, Health: h}
	case r.Class == sender.ClassInterrupted:
		return sender.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}
	return sender.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(retryDelay(l.Tries)), Health: h}
}
