package dispatch

import (
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

const (
	// A spared attempt is made again after this delay, on a connection of its own.
	sparedDelay = time.Second
	// The delay is varied by this share either way, because a server that restarts closes
	// many connections together.
	sparedJitter = 0.2
)

// spared tells whether an attempt is forgiven, because nobody is at fault: its server
// closed an idle connection just when the request was sent on it, or refused the request
// unprocessed. before tells that the attempt before was forgiven too. Then this one counts
// as any failure does, so that an endpoint which always breaks off is not called once a
// second for ever.
func spared(before bool, r *Result) bool {
	return r.ClosedIdle && r.Class == sender.ClassReset && !before
}

// spare decides on a forgiven attempt as if it had not been made. The age stands still, so
// that the schedule loses nothing, and a delivery at the end of its horizon is tried again
// too.
func spare(h sender.Health, r Result, now time.Time) Decision {
	due := now.Add(backoff.Proportional(sparedJitter).Apply(sparedDelay, r.Chance))
	return Decision{Status: sender.StatusAwaitingRetry, Due: due, Health: h, Uncounted: true, Stands: max(0, due.Sub(r.StartedAt)), Spared: true}
}
