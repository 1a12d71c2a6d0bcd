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
	// Whole is up to how many deliveries an event is expanded in one call; those with more
	// are large. 0: as Deliveries.
	Whole int
	// Part is how many deliveries of large events a call makes, all together: less what the
	// others make, but no less than a quarter of it. 0: as Deliveries.
	Part int
}

// Expanded tells what a step has expanded, and whether it left work.
type Expanded struct {
	Events     int
	Deliveries int
	More       bool
}

// Batch lists what one step records, and says what it may claim.
type Batch struct {
	// Results are read only until the call returns: the next one's take their place.
	Results []Result
	Decide  func(live Live, health sender.Health, r Result, now time.Time) Decision
	Claim   ClaimParams

	// Announce makes the event of a notice, addressed to whom it is for, or returns
	// false. It may be nil: then no events are made. An event whose subscriber is
	// not registered is dropped.
	Announce func(n sender.Notice) (sender.Draft, bool)
	// Notices are stored as they are, besides those of the decisions.
	Notices []sender.Notice
}

// ClaimParams says what to claim. Subscribers that have work due take turns,
// those that waited longest first, then each one's subscriptions, then each
// subscription's deliveries, oldest due first. What was served goes to the tail.
//
// Of one subscription's deliveries that have had no attempt the lower event comes first,
// in a claim and from one claim to the next, as long as none of them is put off. What was
// released at once comes before what was never claimed.
//
// A subscription is one process's at a time, so that who dispatches knows of every first
// attempt that is under way for it: while a lease lasts that a process has claimed, no
// other one claims of that subscription. It is free once everything that was held of it is
// recorded or released, or all leases of it have ended, by themselves or because the
// process is taken over. What others hold uses none of a claim's slots; and to a process
// that knows of them by its last Store.Beat or Present it is not due, as Claims
// says it.
type ClaimParams struct {
	Lease time.Duration
	// Token fences what is claimed: it becomes the Claimed.Token of all of it. It must be
	// drawn at random for each claim. Attempt numbers are given out again, after a release
	// or a failover that has lost commits; a token is not.
	Token int64
	// By is the process that claims: see Store.Beat. Zero is no process: nobody takes
	// over what it claims, and no other one is kept away by it, but it is kept away by them.
	// If its Beat is not zero and anything is claimed, the transaction stores it
	// as Store.Beat does.
	By Presence
	// Chance in [0,1) is passed on to the decisions about interrupted attempts.
	Chance float64
	Lanes  [sender.Lanes]LaneParams
	// SubscriptionRoom says, by number, how many more deliveries those with
	// attempts in flight may be given now; it can be zero or less. For the others
	// LaneParams.PerSubscription holds.
	SubscriptionRoom map[int64]int
	// Bytes is how large the bodies of what is claimed may be in all, each event's
	// counted once; 0: there is no bound. The first delivery is claimed however large its
	// body is. Who gets nothing because of it keeps its place among those that are due.
	Bytes int64
}

// LaneParams bounds what is claimed in a lane.
type LaneParams struct {
	Slots           int // deliveries in all
	PerSubscriber   int
	PerSubscription int
	// SubscriberRoom says, by number, how many more deliveries of this lane the
	// subscribers with attempts in flight may be given now; it can be zero or
	// less. For the others PerSubscriber holds.
	SubscriberRoom map[int64]int
}

// Claims is what a step has recorded and claimed.
type Claims struct {
	Now time.Time // the database's
	// Recorded has one entry for each of the batch's results, in their order.
	Recorded []Outcome
	// Claimed has the deliveries of one subscription in the order in which they are to be
	// begun: see ClaimParams.
	Claimed []Claimed
	// Interrupted are the attempts that a claim found lost.
	Interrupted []Recorded
	// Notices were stored.
	Notices []sender.Notice
	// NextDue is when something is due next that was not claimed; zero if
	// nothing is. It may be in the past, if bounds kept it from being claimed.
	NextDue time.Time
}

// Outcome is what became of a result.
type Outcome struct {
	Lost     bool // the lease was lost before: nothing was changed
	Decision Decision
}

// Recorded is a result, and what became of it.
type Recorded struct {
	Outcome
	Target *Target
	Event  sender.EventInfo
	Result Result
}

// LogValue shows whose delivery it is, what came of the attempt, and what was decided.
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
	// Event and Body are its event's. The deliveries of a claim share the body. It is nil,
	// and so is the Event's ID empty, if the event could not be read after the claim was
	// committed, or is not there: Payloads tells which.
	Event sender.EventInfo
	Body  []byte
	At    time.Time // the database's time of the claim
	// Spared tells that the attempt before was forgiven, because its server closed an
	// idle connection: this one must be made on a connection of its own.
	Spared bool
}

// LogValue shows whose delivery it is, and neither the body nor where it goes.
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

// LogValue shows whose it is, and not where it leads.
func (t Target) LogValue() slog.Value {
	return slog.GroupValue(slog.String("subscription_id", t.Subscription), slog.String("subscriber_id", t.Subscriber))
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

// Presence is what a process has said last to show that it lives.
type Presence struct {
	Process int64 // its number: random, and its own
	Beat    int64 // rises each time, from 1
}
