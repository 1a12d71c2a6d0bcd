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

// Ended is an attempt that was recorded, with what became of its delivery.
type Ended struct {
	Result *dispatch.Result
	Became sender.Status
	Single bool        // the delivery was delivered before: its success is not that of the event
	Lane   sender.Lane // of its subscription, before the attempt was settled
}

// succeeded tells whether the attempt made its delivery delivered.
func (e *Ended) succeeded() bool { return e.Result.Class == sender.ClassNone && !e.Single }

// firstTry tells whether it did so as the first one.
func (e *Ended) firstTry() bool { return e.succeeded() && e.Result.Number == 1 }

// CountAttempt adds an attempt to a minute's rollup.
func CountAttempt(r *history.Rollup, e Ended) {
	a := e.Result
	countAttempt(e, &r.Delivered, &r.DeadLettered, &r.Interrupted, &r.Failed, &r.Failures)
	lane := &r.Lanes[e.Lane]
	if a.Class == sender.ClassNone {
		lane.Delivered++
	} else {
		lane.Failed++
	}
	if e.succeeded() {
		r.Succeeded++
	}
	if e.firstTry() {
		r.FirstTry++
	}
	if a.Published.IsZero() {
		return
	}
	if a.Number == 1 {
		r.FirstAttempt.Add(a.StartedAt.Sub(a.Published))
		lane.FirstAttempt.Add(a.StartedAt.Sub(a.Published))
	}
	if e.succeeded() {
		r.Success.Add(a.StartedAt.Add(a.Duration).Sub(a.Published))
	}
}

// CountSubscriptionAttempt adds an attempt to the rollup of its subscription and its hour.
func CountSubscriptionAttempt(r *history.SubscriptionRollup, e Ended) {
	countAttempt(e, &r.Delivered, &r.DeadLettered, &r.Interrupted, &r.Failed, &r.Failures)
	if e.succeeded() {
		r.Succeeded++
	}
	if e.firstTry() {
		r.FirstTry++
	}
	if e.Result.Class != sender.ClassInterrupted {
		r.Duration.Add(e.Result.Duration)
	}
}

// countAttempt counts an attempt once, with what became of its delivery, and by its class if
// it failed.
func countAttempt(e Ended, delivered, dead, interrupted, failed *int64, failures *map[sender.Class]int64) {
	class := e.Result.Class
	switch {
	case class == sender.ClassNone:
		*delivered++
		return
	case e.Became == sender.StatusDeadLettered:
		*dead++
	case class == sender.ClassInterrupted:
		*interrupted++
	default:
		*failed++
	}
	if *failures == nil {
		*failures = map[sender.Class]int64{}
	}
	(*failures)[class]++
}
