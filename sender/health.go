package sender

import "time"

const (
	// Subscriptions that fail this often in a row are on probation even if their
	// failures come fast.
	probationStreak = 5

	// A failure after a longer silence begins a new failing time.
	failingSilence = 24 * time.Hour
)

// health is what an attempt makes of what is remembered of its subscription.
func (p Policy) health(h Health, r Result, now time.Time) Health {
	fast := r.Duration <= p.fastAnswer()
	switch r.Class {
	case ClassNone:
		h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, time.Time{}, 0, time.Time{}
		// To the minute, so that a healthy subscription's row is hardly written.
		if now.Sub(h.LastSuccess) >= time.Minute {
			h.LastSuccess = now
		}
		h.Lane = LaneProbation
		if fast {
			h.Lane = LaneProven
		}
	case ClassInterrupted: // says nothing of the endpoint
	default:
		if h.Streak == 0 || now.Sub(h.LastFailure) > failingSilence {
			h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, now, 0, time.Time{}
		}
		h.Streak++
		h.LastFailure = now
		if !fast || h.Lane == LaneNew || h.Streak >= probationStreak {
			h.Lane = LaneProbation
		}
	}
	return h
}
