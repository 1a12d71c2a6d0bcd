package dispatch

import (
	"log/slog"
	"time"

	"github.com/surehook/surehook/sender"
)

// ExpandParams bounds what one step expands.
type ExpandParams struct {
	Events     int
	Deliveries int
	// Whole is the largest number of deliveries with which one call expands a whole event.
	// Events with more deliveries are large. 0: as Deliveries.
	Whole int
	// Part is how many deliveries of large events a call makes in all. The deliveries of
	// the other events reduce it, but to no less than a quarter of it. 0: as Deliveries.
	Part int
	// Convert makes the bodies for subscriptions that are pinned to an older payload version,
	// whose filters decide by them: see rules.Content.
	Convert sender.Convert
}

// Expanded tells how much a step has expanded, and whether it left work.
type Expanded struct {
	Events     int
	Deliveries int
	More       bool
}

// Batch lists the results that one step records, and says what it may claim.
type Batch struct {
	// Results may be read only until the call returns: the caller reuses the slice for the
	// next call.
	Results []Result
	Decide  func(live Live, health sender.Health, r Result, now time.Time) Decision
	Claim   ClaimParams

	// Announce makes the event of a notice, addressed to the notice's recipient, or returns
	// false. It may be nil: then no events are made. The store drops an event whose
	// subscriber is not registered.
	Announce func(n sender.Notice) (sender.Draft, bool)
	// Notices are stored as they are, besides the notices of the decisions.
	Notices []sender.Notice
}

// ClaimParams says what to claim. Subscribers that have work due take turns, and the
// subscriber that has waited longest comes first. So do the subscriptions of a subscriber.
// Within a subscription the delivery that has been due for longest comes first. A
// subscriber or subscription that was served goes to the tail.
//
// Among one subscription's deliveries without an attempt, the delivery of the lower event
// comes first, within a claim and from one claim to the next, as long as none of them is
// put off. A delivery that was released at once comes before deliveries that were never
// claimed.
//
// A subscription belongs to one process at a time, so that this process knows of every
// first attempt that is under way for the subscription. While a process's lease on one of
// the subscription's deliveries lasts, no other process claims from that subscription. It
// is free once all of its held deliveries are recorded or released, or all of its leases
// have ended, by themselves or because the process is taken over. Subscriptions of other
// processes use none of a claim's slots. If the claiming process knows the others by its
// last Store.Beat or Present, their deliveries do not count as due in Claims.NextDue.
type ClaimParams struct {
	Lease time.Duration
	// Token fences the claimed deliveries: it becomes the Claimed.Token of each. It must be
	// drawn at random for each claim. Attempt numbers are given out again, after a release
	// or a failover that has lost commits; a token is not.
	Token int64
	// By is the process that claims: see Store.Beat. Zero is no process: nobody takes over
	// its claims, and its claims keep no process away from a subscription, but the claims
	// of processes keep it away. If its Beat is not zero and anything is claimed, the
	// transaction stores the beat as Store.Beat does.
	By Presence
	// Chance in [0,1) is passed on to the decisions about interrupted attempts.
	Chance float64
	Lanes  [sender.Lanes]LaneParams
	// SubscriptionRoom says, by number, how many more deliveries the subscriptions with
	// attempts in flight may be given now; it can be zero or less.
	// LaneParams.PerSubscription holds for the other subscriptions.
	SubscriptionRoom map[int64]int
	// Bytes is how large the bodies of the claimed deliveries may be in all, with each
	// event's body counted once; 0: there is no bound. The first delivery is claimed
	// however large its body is. A delivery that this bound keeps back stays in its place
	// among the deliveries that are due.
	Bytes int64
}

// LaneParams bounds the claim in a lane.
type LaneParams struct {
	Slots           int // deliveries in all
	PerSubscriber   int
	PerSubscription int
	// SubscriberRoom says, by number, how many more deliveries of this lane the subscribers
	// with attempts in flight may be given now; it can be zero or less. PerSubscriber holds
	// for the other subscribers.
	SubscriberRoom map[int64]int
}

// Claims tells what a step has recorded and claimed.
type Claims struct {
	Now time.Time // the database's time
	// Recorded has one entry for each of the batch's results, in their order.
	Recorded []Outcome
	// Claimed has the deliveries of one subscription in the order in which they must be
	// begun: see ClaimParams.
	Claimed []Claimed
	// Interrupted are the attempts that the claim found lost.
	Interrupted []Recorded
	// Notices are the notices that were stored.
	Notices []sender.Notice
	// NextDue is when the next delivery is due that was not claimed; zero if there is none.
	// It may be in the past, if bounds kept that delivery from being claimed.
	NextDue time.Time
}

// Outcome tells whether a result was recorded, and the decision about it.
type Outcome struct {
	Lost     bool // nothing was changed: the lease was lost before, or a call that seemed to fail has recorded the result
	Decision Decision
	// Single is Live.Single: the delivery was delivered before, so that another success had
	// brought the event.
	Single bool
}

// Recorded is a result, and its outcome.
type Recorded struct {
	Outcome
	Target *Target
	Event  sender.EventInfo
	Result Result
}

// LogValue shows the delivery's owner, the attempt's result, and the decision.
func (r Recorded) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("event_id", r.Event.ID), slog.Int("attempt", r.Result.Number), slog.String("class", string(r.Result.Class)),
		slog.String("status", string(r.Decision.Status)), slog.Bool("lost", r.Lost),
	}
	if r.Target != nil {
		attrs = append(attrs, slog.Any("target", *r.Target))
	}
	return slog.GroupValue(attrs...)
}

// Claimed is a delivery that may be attempted until its lease ends.
type Claimed struct {
	Key    DeliveryKey
	Token  int64 // ClaimParams.Token of the claim
	Number int   // of the attempt, from 1
	Target *Target
	// Event and Body belong to the delivery's event. The deliveries of a claim share the
	// body. If the event could not be read after the claim was committed, or does not
	// exist, the body is nil and the Event's ID is empty: Payloads tells which of the two
	// is the case.
	Event sender.EventInfo
	Body  []byte
	At    time.Time // the database's time of the claim
	// Spared tells that the attempt before was forgiven, because its server closed an idle
	// connection. This attempt must be made on a connection of its own.
	Spared bool
	// Converted tells that Body was made for the payload version of the subscription, and is
	// not the event's own. A store does not set it: see KeepBodies.
	Converted bool
}

// LogValue shows the delivery's owner, and neither the body nor the URL.
func (c Claimed) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("event_id", c.Event.ID), slog.Int("attempt", c.Number)}
	if c.Target != nil {
		attrs = append(attrs, slog.Any("target", *c.Target))
	}
	return slog.GroupValue(attrs...)
}

// Payload is an event as it is sent.
type Payload struct {
	Event sender.EventInfo
	Body  []byte
}

// Target is where a claimed delivery goes. The deliveries of a claim share it.
type Target struct {
	Subscription     string // its id
	SubscriptionNo   int64
	URL              string
	Subscriber       string // its id
	SubscriberNumber int64
	KeyringVersion   int64            // caches of keyrings are keyed by it
	Settings         *sender.Settings // nil: all zero
	Lane             sender.Lane
}

// LogValue shows the target's owner, and not the URL.
func (t Target) LogValue() slog.Value {
	return slog.GroupValue(slog.String("subscription_id", t.Subscription), slog.String("subscriber_id", t.Subscriber))
}

// KeptBody is the body of a claimed delivery, to be kept.
type KeptBody struct {
	Key   DeliveryKey
	Token int64
	Body  []byte // nil: the call only asks which body is kept
}

// Release gives a claimed delivery back.
type Release struct {
	Key   DeliveryKey
	Token int64
	Due   time.Time // zero: at once
}

// DeliveryKey names a delivery inside one store, by numbers that the store gave.
type DeliveryKey struct {
	Event        int64
	Subscription int64
}

// Presence is a process's last sign that it lives.
type Presence struct {
	Process int64 // its number, which is random and unique
	Beat    int64 // rises each time, from 1
}
