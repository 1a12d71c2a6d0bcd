package sender

import (
	"cmp"
	"time"

	"github.com/surehook/surehook/backoff"
)

// Policy decides what an attempt's outcome does to its delivery and to its
// subscription. It is a value; its decisions depend on their arguments alone.
type Policy struct {
	// Backoff says when to try again and when to give up. Its zero
	// value is backoff.Reference.
	Backoff backoff.Policy

	// FastAnswer is how soon an endpoint must answer to be proven. Zero: 1 s.
	FastAnswer time.Duration
}

const defaultFastAnswer = time.Second

// Subscriptions that fail this often in a row are on probation even if their
// failures come fast.
const probationStreak = 5

// Decide is the function that a Batch carries. now is the database's time.
func (p Policy) Decide(l Live, h Health, r Result, now time.Time) Decision {
	h = p.health(h, r, now)
	if r.Class == ClassNone {
		return Decision{Status: StatusDelivered, Health: h}
	}
	if l.Single {
		return Decision{Status: StatusDelivered, Health: h}
	}
	delay, again := p.Backoff.Next(backoff.State{
		Attempt: l.Tries, Age: now.Sub(l.First), Outcome: outcome(r), RetryAfter: r.RetryAfter,
	}, r.Chance)
	if !again {
		return Decision{Status: StatusDeadLettered, Health: h}
	}
	return Decision{Status: StatusAwaitingRetry, Due: now.Add(delay), Health: h}
}

func outcome(r Result) backoff.Outcome {
	switch {
	case r.Class == ClassInterrupted:
		return backoff.Interrupted
	case r.StatusCode == 429 || r.StatusCode == 503:
		return backoff.Throttled
	}
	return backoff.Failed
}

func (p Policy) health(h Health, r Result, now time.Time) Health {
	fast := r.Duration <= p.fastAnswer()
	switch r.Class {
	case ClassNone:
		h.Streak, h.FailingSince = 0, time.Time{}
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
		h.Streak++
		h.LastFailure = now
		if h.FailingSince.IsZero() {
			h.FailingSince = now
		}
		if !fast || h.Lane == LaneNew || h.Streak >= probationStreak {
			h.Lane = LaneProbation
		}
	}
	return h
}

func (p Policy) fastAnswer() time.Duration { return cmp.Or(p.FastAnswer, defaultFastAnswer) }
