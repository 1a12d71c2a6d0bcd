package rules

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// A dead letter can hold back the later versions of its object for longer than receivers
// remember events. When a sweep lets them go on, those that are too old end instead: their
// receivers would perhaps apply them twice (I10).

// Held has what a store reads of a delivery that is behind a dead letter in a line.
type Held struct {
	Published time.Time // when its event was
	Single    bool      // it was delivered before
	Notice    bool      // its event tells of a notice
}

// Expires tells whether what is held back can be too old to go on. Nothing is sent while a
// subscription is paused or disabled, and its resume asks for the age.
func Expires(status sender.SubscriptionStatus, notBefore time.Time) bool {
	return !notBefore.IsZero() && (status == sender.SubscriptionActive || status == sender.SubscriptionClosing)
}

// Expire returns how deliveries end that a dead letter does not hold back any more and
// whose events were published before notBefore: the first of held, and at most most of
// them. held are in the order of their line, without those that a resume has skipped. They
// reach up to the first that is not too old, or to one more than most. left tells that
// others are to end. The dead letter stays in the line until they have ended.
//
// Each becomes a dead letter, which can be redelivered and replayed by force. One that was
// delivered before stays delivered. Under the latest order, one that a newer version
// follows is superseded.
func Expire(order sender.Order, held []Held, notBefore time.Time, most int) (ends []sender.Status, left bool) {
	for i, h := range held {
		switch {
		case Within(h.Published, notBefore) == nil:
			return ends, false
		case i == most:
			return ends, true
		case order == sender.OrderLatest && i+1 < len(held):
			ends = append(ends, Superseded(h.Single))
		default:
			ends = append(ends, DeadLettered(h.Single))
		}
	}
	return ends, false
}

// ExpireNotice is the notice of the dead letters that Expire has made, for the owner of
// their subscription. It is about the first of them, held[at]: the store fills in its
// Subscription and its Delivery. Deliveries that tell of notices themselves do not count;
// ok is false if there is no other.
func ExpireNotice(subscriber string, held []Held, ends []sender.Status) (n sender.Notice, at int, ok bool) {
	all := 0
	for i, end := range ends {
		if end != sender.StatusDeadLettered || held[i].Notice {
			continue
		}
		if all++; all == 1 {
			at = i
		}
	}
	if all == 0 {
		return n, 0, false
	}
	n = sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: subscriber, Detail: fmt.Sprintf(
		"it is not attempted any more: an earlier version of its object, a dead letter, held it back for so long that its receiver may have forgotten its event, which was published at %s",
		held[at].Published.UTC().Format(time.RFC3339))}
	switch {
	case all == 2:
		n.Detail += "; so is one later version"
	case all > 2:
		n.Detail += fmt.Sprintf("; so are %d later versions", all-1)
	}
	n.Detail += ". It can be sent again by force"
	return n, at, true
}
