package rules

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// Redeliver returns an error unless a delivery may be sent again. gone tells that its
// subscription was deleted. The error matches sender.ErrCancelled or sender.ErrRedacted, or
// is a *sender.RetentionError if the event was published before notBefore; zero is no time.
// A delivery that is in flight, waits or has ended otherwise may be.
func Redeliver(d *sender.Delivery, gone bool, notBefore time.Time) error {
	switch {
	case gone:
		return fmt.Errorf("%w: its subscription %q was deleted", sender.ErrCancelled, d.Subscription)
	case d.Status == sender.StatusCancelled:
		return fmt.Errorf("%w: its subscription %q was resumed without it, or its event was redacted", sender.ErrCancelled, d.Subscription)
	case d.Redacted:
		return fmt.Errorf("%w: delivery %q", sender.ErrRedacted, d.ID)
	}
	return Within(d.CreatedAt, notBefore)
}

// Within returns a *sender.RetentionError if the oldest event that would be sent was
// published before notBefore: its receivers may have forgotten it, and would apply it twice
// (I10). It returns nil if either time is zero.
func Within(oldest, notBefore time.Time) error {
	if oldest.IsZero() || !oldest.Before(notBefore) {
		return nil
	}
	return &sender.RetentionError{Published: oldest, NotBefore: notBefore}
}

// ReplayNotBefore is the bound of Within for the members of a replay whose turn comes at a
// time: the replay was created with notBefore at created, and the bound has risen by what
// has passed since. So a replay that is paused or slow sends nothing that its receivers
// have forgotten meanwhile. Zero stays zero: the replay takes events of any age.
func ReplayNotBefore(notBefore, created, now time.Time) time.Time {
	if notBefore.IsZero() {
		return notBefore
	}
	return notBefore.Add(max(0, now.Sub(created)))
}
