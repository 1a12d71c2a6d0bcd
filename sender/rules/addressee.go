package rules

import (
	"fmt"

	"github.com/surehook/surehook/sender"
)

// NoSubscriber says what becomes of a draft whose subscriber does not exist, or does not any
// more. One with IfSubscriberExists is dropped: the store writes nothing of it, goes on with
// the next, and returns the Ref. Any other is refused with sender.ErrNotFound.
func NoSubscriber(d *sender.Draft) (sender.Ref, error) {
	if d.IfSubscriberExists {
		return sender.Ref{Dropped: true}, nil
	}
	return sender.Ref{}, fmt.Errorf("%w: subscriber %q: make it in the transaction that makes your customer, or set Event.IfSubscriberExists to drop the events of those who have none", sender.ErrNotFound, d.Subscriber)
}
