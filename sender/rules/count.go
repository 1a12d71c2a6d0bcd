package rules

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// CountExpanded adds to a minute's rollup what an expansion has done.
func CountExpanded(r *history.Rollup, x dispatch.Expanded) {
	r.Published += int64(x.Events)
	r.Deliveries += int64(x.Deliveries)
}

// CountAttempt adds an attempt that was recorded to a minute's rollup: once, with what
// became of its delivery. single tells that this was delivered before, so that its success
// is not that of the event.
func CountAttempt(r *history.Rollup, a *dispatch.Result, became sender.Status, single bool) {
	switch {
	case a.Class == sender.ClassNone:
		r.Delivered++
	case became == sender.StatusDeadLettered:
		r.DeadLettered++
	case a.Class == sender.ClassInterrupted:
		r.Interrupted++
	default:
		r.Failed++
	}
	if a.Class != sender.ClassNone {
		if r.Failures == nil {
			r.Failures = map[sender.Class]int64{}
		}
		r.Failures[a.Class]++
	}
	if a.Published.IsZero() {
		return
	}
	if a.Number == 1 {
		r.FirstAttempt.Add(a.StartedAt.Sub(a.Published))
	}
	if a.Class == sender.ClassNone && !single {
		r.Success.Add(a.StartedAt.Add(a.Duration).Sub(a.Published))
	}
}
