package history

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// Rollup is what happened in a minute. It is a figure to watch, not an account. On
// PostgreSQL a process writes its counts once a second, so those of a process that was
// killed, or whose connection broke while it committed, can be missing. The attempts
// themselves are all there.
type Rollup struct {
	Minute time.Time // when it began, UTC

	Published  int64 // events that were expanded
	Deliveries int64 // made of them

	// Attempts that ended, each counted once. A result that came after its lease was
	// lost is not counted.
	Delivered    int64 // answered with 2xx in time
	DeadLettered int64 // the delivery was dead-lettered by it
	Interrupted  int64 // it was lost, and the delivery was not dead-lettered
	Failed       int64 // failed otherwise: the delivery mostly awaits a retry

	// Failures are the attempts that failed, by class.
	Failures map[sender.Class]int64 `json:",omitempty"`

	// Succeeded are deliveries that became delivered, and FirstTry those of them whose
	// first attempt did it. One that was delivered before, and is sent once more, is not
	// counted.
	Succeeded int64
	FirstTry  int64

	// FirstAttempt is from publishing an event to the beginning of the first attempt
	// of each delivery; Success, to the end of the attempt that delivered it.
	FirstAttempt Latency
	Success      Latency

	// Backlog and OldestDue are Counts.Live and Counts.OldestDue as they were at the
	// end of the minute, or as the minute began if it has not ended.
	Backlog   int64
	OldestDue time.Time

	// Lanes are the figures of each lane, by its number. A subscription on probation is
	// slow or fails: what waits there waits for the subscriber's endpoint, and the other
	// lanes tell how fast this side is.
	Lanes [sender.Lanes]LaneRollup
}

// LaneRollup is what happened in a minute to the subscriptions of a lane. An attempt
// counts in the lane that its subscription was in before it.
type LaneRollup struct {
	Delivered int64 `json:",omitzero"` // attempts that were answered with 2xx in time
	Failed    int64 `json:",omitzero"` // all others that ended

	FirstAttempt Latency `json:",omitzero"` // as Rollup.FirstAttempt

	// Backlog and OldestDue are LaneCounts.Live and LaneCounts.OldestDue, as of
	// Rollup.Backlog.
	Backlog   int64     `json:",omitzero"`
	OldestDue time.Time `json:",omitzero"`
}

func (l *LaneRollup) merge(other *LaneRollup) {
	l.Delivered += other.Delivered
	l.Failed += other.Failed
	l.FirstAttempt.Merge(&other.FirstAttempt)
	l.Backlog = max(l.Backlog, other.Backlog)
	l.OldestDue = earlier(l.OldestDue, other.OldestDue)
}

// Merge adds what happened in another minute, or what another process has done in
// this one. Minute becomes the earlier of the two, Backlog the larger, and
// OldestDue the earlier.
func (r *Rollup) Merge(other *Rollup) {
	r.Minute = earlier(r.Minute, other.Minute)
	r.Published += other.Published
	r.Deliveries += other.Deliveries
	r.Delivered += other.Delivered
	r.DeadLettered += other.DeadLettered
	r.Interrupted += other.Interrupted
	r.Failed += other.Failed
	mergeFailures(&r.Failures, other.Failures)
	r.Succeeded += other.Succeeded
	r.FirstTry += other.FirstTry
	for lane := range r.Lanes {
		r.Lanes[lane].merge(&other.Lanes[lane])
	}
	r.FirstAttempt.Merge(&other.FirstAttempt)
	r.Success.Merge(&other.Success)
	r.Backlog = max(r.Backlog, other.Backlog)
	r.OldestDue = earlier(r.OldestDue, other.OldestDue)
}

// Waits sets Backlog, OldestDue and those of the lanes to what counts tell. Stores call it.
func (r *Rollup) Waits(c *Counts) {
	r.Backlog, r.OldestDue = c.Live, c.OldestDue
	for lane := range r.Lanes {
		r.Lanes[lane].Backlog, r.Lanes[lane].OldestDue = c.Lanes[lane].Live, c.Lanes[lane].OldestDue
	}
}

// Attempts is how many ended.
func (r *Rollup) Attempts() int64 { return r.Delivered + r.DeadLettered + r.Interrupted + r.Failed }

// mergeFailures adds counts of failures by class. A map is made for the first.
func mergeFailures(to *map[sender.Class]int64, other map[sender.Class]int64) {
	for class, n := range other {
		if *to == nil {
			*to = map[sender.Class]int64{}
		}
		(*to)[class] += n
	}
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
