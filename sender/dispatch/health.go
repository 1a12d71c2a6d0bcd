package dispatch

import (
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// Subscriptions that fail this often in a row are on probation even if their
	// failures come fast.
	probationStreak = 5

	// A failure after a longer silence begins a new failing time.
	failingSilence = 24 * time.Hour
)

// health returns a subscription's health after an attempt.
func (p Policy) health(h sender.Health, r Result, now time.Time) sender.Health {
	fast := r.Duration <= p.fastAnswer()
	switch r.Class {
	case sender.ClassNone:
		h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, time.Time{}, 0, time.Time{}
		// LastSuccess is kept to the minute, so that a healthy subscription's row is hardly
		// written.
		if now.Sub(h.LastSuccess) >= time.Minute {
			h.LastSuccess = now
		}
		h.Lane = sender.LaneProbation
		if fast {
			h.Lane = sender.LaneProven
		}
	case sender.ClassInterrupted: // it says nothing of the endpoint
	default:
		if h.Streak == 0 || now.Sub(h.LastFailure) > failingSilence {
			h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, now, 0, time.Time{}
		}
		h.Streak++
		h.LastFailure = now
		if !fast || h.Lane == sender.LaneNew || h.Streak >= probationStreak {
			h.Lane = sender.LaneProbation
		}
	}
	return h
}
