package rules

import "github.com/surehook/surehook/sender"

// Cancelled is the status in which a delivery ends that reads as cancelled, and whose last
// attempt, if it had one, was no success. single tells that it was delivered before, and
// was to be sent once more: it stays delivered (I6).
func Cancelled(single bool) sender.Status {
	if single {
		return sender.StatusDelivered
	}
	return sender.StatusCancelled
}

// Superseded is the status in which a delivery ends that a newer version of its object has
// overtaken. single is as for Cancelled.
func Superseded(single bool) sender.Status {
	if single {
		return sender.StatusDelivered
	}
	return sender.StatusSuperseded
}

// DeadLettered is the status in which a delivery ends that is given up. single is as for
// Cancelled.
func DeadLettered(single bool) sender.Status {
	if single {
		return sender.StatusDelivered
	}
	return sender.StatusDeadLettered
}

// Status is the status of a delivery that has not ended. cancelled tells that its
// subscription was deleted, or resumed without it, or that its event was redacted: it
// reads so at once, and a Sweep stores it later. single is as for Cancelled. held tells
// that its subscription is paused or disabled. attempts is how many have ended.
func Status(cancelled, single, held bool, attempts int) sender.Status {
	switch {
	case cancelled:
		return Cancelled(single)
	case held:
		return sender.StatusHeld
	case attempts == 0:
		return sender.StatusPending
	}
	return sender.StatusAwaitingRetry
}
