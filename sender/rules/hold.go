package rules

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// Hold decides whether a subscription that has a status is to be held: made paused or
// disabled. hold is false, without an error, if it is that already. Held deliveries are
// neither attempted nor lost (I1).
//
// The error matches sender.ErrInvalid if it is to become anything else, and sender.ErrStatus
// if it is closing, or is disabled and to be paused: an owner does not undo what the
// operator, or the failures, have done.
func Hold(id string, present, to sender.SubscriptionStatus) (hold bool, err error) {
	switch {
	case to != sender.SubscriptionPaused && to != sender.SubscriptionDisabled:
		return false, fmt.Errorf("%w status %q: a subscription is held by making it paused or disabled", sender.ErrInvalid, to)
	case present == to:
		return false, nil
	case present == sender.SubscriptionClosing:
		return false, closing(id)
	case present == sender.SubscriptionDisabled:
		return false, fmt.Errorf("%w: subscription %q is disabled, which holds its deliveries already: resume it first", sender.ErrStatus, id)
	}
	return true, nil
}

// Resume decides whether a subscription that has a status is to be made active. resume is
// false, without an error, if it is that already. The error matches sender.ErrStatus if it is
// closing.
func Resume(id string, present sender.SubscriptionStatus) (resume bool, err error) {
	switch present {
	case sender.SubscriptionActive:
		return false, nil
	case sender.SubscriptionClosing:
		return false, closing(id)
	}
	return true, nil
}

func closing(id string) error {
	return fmt.Errorf("%w: subscription %q is closing: it can only be deleted", sender.ErrStatus, id)
}

// Recovered is the health of a subscription that was disabled and is resumed. Its failing
// time begins anew, and its owner is warned anew before it is disabled again. It keeps its
// lane until an attempt tells how its endpoint does.
func Recovered(h sender.Health) sender.Health {
	h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, time.Time{}, 0, time.Time{}
	return h
}

// Close returns the status that a subscription gets by being closed. SubscriptionClosing:
// it still gets what was committed before. "": it is deleted at once, because it is held,
// and nothing would ever empty it.
func Close(present sender.SubscriptionStatus) sender.SubscriptionStatus {
	switch present {
	case sender.SubscriptionActive, sender.SubscriptionClosing:
		return sender.SubscriptionClosing
	}
	return ""
}
