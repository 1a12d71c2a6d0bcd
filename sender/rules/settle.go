package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Standing tells how a delivery stands when an attempt of it has ended, by the rows that
// the store holds.
type Standing struct {
	Claimed time.Time // when the attempt was

	// The delivery reads as cancelled if one of these is set.
	Gone     bool // its subscription was deleted
	Skipped  bool // its subscription was resumed without it
	Redacted bool // its event's body was removed

	// Resumed tells that its subscription was resumed, with it, since the attempt was
	// claimed.
	Resumed bool

	// Settings are its subscription's; nil: all zero.
	Settings *sender.Settings

	// Newer tells that a newer version of its object waits behind it, and its
	// subscription wants the latest alone.
	Newer bool

	// Active tells that its subscription is neither paused, disabled nor closing, so that a
	// decision may disable it. Closing tells that it is closing, and gets the rest of its
	// deliveries.
	Active, Closing bool
}

// Verdict is what becomes of a delivery and of its subscription.
type Verdict struct {
	// Decision is what was decided, as far as it applies: it belongs into the Outcome. Its
	// Status is one of StatusDelivered, StatusAwaitingRetry, StatusDeadLettered,
	// StatusCancelled and StatusSuperseded. Its Health is to be stored whatever that is.
	dispatch.Decision

	// Live is what the delivery's row remembers if its Status is StatusAwaitingRetry. Else
	// the delivery has ended, and it means nothing.
	Live dispatch.Live

	// Snippet and Headers are stored with the attempt.
	Snippet []byte
	Headers sender.Headers
}

// Settle decides what an ended attempt makes of its delivery and of its subscription. The
// attempt's lease must be the present one, and is over with it. l and h are as they are
// stored; now is the database's time.
//
// A delivery that reads as cancelled ends with the attempt in hand, whatever is decided
// about it, and no other attempt is begun (I6). It ends as delivered if the attempt
// succeeded, or if it was delivered before: an event that a receiver has is not called
// cancelled. Any other delivery ends by the decision alone, or goes on (I1). One that a
// newer version has overtaken does not go on.
//
// If a resume has started the schedule anew, the attempt in hand is its first: the horizon
// begins with it, and a spared attempt before it is forgotten. If the attempt was lost,
// the horizon begins now, because the lease may have ended long before the resume. Attempt
// numbers go on (I7). An uncounted attempt leaves the schedule as it was, except that it
// stood still for a while.
//
// decide is asked about every attempt, even of a subscription that was deleted. It may be
// nil if the delivery reads as cancelled: its subscription's health then stays as it is. It
// must be pure, since a transaction may run again. Its Disable is dropped if the subscription
// is not active. No notice is made of a subscription that was deleted, and none warns that one
// is failing if it is closing.
//
// The error matches sender.ErrInvalid. It says which part of a decision is not valid.
func Settle(l dispatch.Live, h sender.Health, r dispatch.Result, s Standing,
	decide func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision, now time.Time,
) (v Verdict, err error) {
	s.complete(&l, r.Class, now)
	if s.Redacted {
		r.Snippet, r.Headers = nil, ""
	}
	cancelled := s.Gone || s.Skipped || s.Redacted
	switch {
	case decide != nil:
		v.Decision = decide(l, h, r, now)
		v.Health.Recent = h.Recent
		if o := outcome(&r, &v.Decision); o != sender.OutcomeNone {
			v.Health.Recent = h.Recent.Add(o)
		}
	case cancelled:
		v.Health = h
	default:
		return v, fmt.Errorf("%w batch: it needs Decide", sender.ErrInvalid)
	}
	if v.Health.Lane >= sender.Lanes {
		return v, fmt.Errorf("%w decision: lane %d: there are %d", sender.ErrInvalid, v.Health.Lane, sender.Lanes)
	}
	v.Live, v.Snippet, v.Headers = l, r.Snippet, r.Headers
	switch {
	case cancelled && r.Class == sender.ClassNone:
		v.Status = sender.StatusDelivered
	case cancelled:
		v.Status = Cancelled(l.Single)
	case v.Status == sender.StatusAwaitingRetry && s.Newer:
		v.Status = Superseded(l.Single)
	case v.Status == sender.StatusAwaitingRetry:
		if v.Uncounted {
			v.Live.Tries--
		}
		v.Live.Stood += v.Stands
		v.Live.Spared = v.Spared
	case v.Status != sender.StatusDelivered && v.Status != sender.StatusDeadLettered:
		return v, fmt.Errorf("%w decision: status %q of a delivery that was attempted", sender.ErrInvalid, v.Status)
	}
	if !s.Active {
		v.Disable = ""
	}
	switch {
	case s.Gone:
		v.Notices = nil
	case s.Closing: // it is never disabled, so nobody is warned of that
		v.Notices = slices.DeleteFunc(slices.Clone(v.Notices), func(n sender.Notice) bool { return n.Kind == sender.NoticeFailing })
	}
	return v, nil
}

// complete fills in what a decision needs beside the delivery's row.
func (s *Standing) complete(l *dispatch.Live, class sender.Class, now time.Time) {
	if s.Resumed {
		l.Tries, l.First, l.Stood, l.Spared = 1, s.Claimed, 0, false
		if class == sender.ClassInterrupted {
			l.First = now
		}
	}
	o := s.Settings
	if o == nil {
		return
	}
	if o.Order == sender.OrderObject {
		l.HoldTries, l.HoldFor = o.HoldTries, o.HoldFor
	}
	if o.HasPolicy() {
		l.Own = o
	}
	// Nothing holds a closing subscription: its deliveries must come to their end.
	l.GoneStops = o.Gone == sender.GoneStops && !s.Closing
}

// outcome is what an attempt tells of its endpoint; OutcomeNone: nothing.
func outcome(r *dispatch.Result, d *dispatch.Decision) sender.Outcome {
	switch {
	case r.Class == sender.ClassNone:
		return sender.OutcomeSucceeded
	case r.Class == sender.ClassInterrupted || d.Uncounted || r.OwnNetwork || r.ProxyFailed:
		return sender.OutcomeNone
	case d.Status == sender.StatusDeadLettered:
		return sender.OutcomeDeadLettered
	}
	return sender.OutcomeFailed
}
