package sender

import (
	"context"
	"time"
)

// Store is what a service that sends needs from its database. Each part is used
// by one type of this package; the comments of their methods are the contract,
// storetest checks it, and package rules has the decisions that every store runs on
// its rows. Tx is the transaction of the producer's database driver.
//
// All methods are safe for concurrent use, by any number of processes. A method
// that returns an error has changed nothing, unless it says otherwise. Times
// are those of the database's clock, in microseconds or finer.
type Store[Tx any] interface {
	OutboxStore[Tx]
	RegistryStore[Tx]
	SecretStore[Tx]
	DispatchStore
	HistoryStore
	ReplayStore
	FeedStore
}

// OutboxStore persists events. Publisher uses it.
type OutboxStore[Tx any] interface {
	// PublishTx persists drafts in tx, in their order, and returns a Ref for
	// each. It is one round trip, and locks nothing but the version rows of the
	// drafts' objects and their idempotency keys. It never begins, ends or
	// savepoints tx, and keeps no reference to it. Nothing is visible to others,
	// and nothing is sent, unless tx commits; once it has committed, the event is
	// durable.
	//
	// A draft without a version gets the object's last version + 1, or more: see
	// DispatchStore.Prune. One with a
	// version that does not exceed the last is refused with a *VersionError. A
	// draft whose (KeyScope, Key) is stored already changes nothing, the version
	// included: with the same KeyHash its Ref is the first one's with Duplicate
	// set, with another one it is refused with ErrIdempotencyKey. A Subscriber or
	// Subscription that is not registered is refused with ErrNotFound.
	//
	// On any error the caller must roll tx back: some drafts may have been
	// written in it. A conflict that the database resolves by aborting comes back
	// matching ErrRetryTx. A transaction that would not be durable is refused
	// with ErrUnfit.
	PublishTx(ctx context.Context, tx Tx, drafts []Draft) ([]Ref, error)

	// InTx runs fn in a transaction that commits if fn returns nil and rolls back
	// if it returns an error or panics. What matches ErrRetryTx is retried a few
	// times, so fn may run more than once. Transactions of this store in one
	// process take turns in the order of their calls where the database has a
	// single writer.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// Wake hints to the dispatchers of this process that something may be due.
	Wake()
}

// RegistryStore keeps subscribers and subscriptions. Registry uses it. Ids,
// URLs and filters have been validated by the caller.
type RegistryStore[Tx any] interface {
	// CreateSubscriberTx stores a subscriber with its sealed secrets, or returns
	// ErrExists if the id is, or was, in use.
	CreateSubscriberTx(ctx context.Context, tx Tx, s Subscriber, secrets []SealedSecret) error

	// SubscriberTx returns a subscriber, or ErrNotFound.
	SubscriberTx(ctx context.Context, tx Tx, id string) (Subscriber, error)

	// SubscriberKeyringTx returns a subscriber's sealed secrets, or ErrNotFound.
	SubscriberKeyringTx(ctx context.Context, tx Tx, id string) (SealedKeyring, error)

	// CreateSubscriptionTx stores an active subscription. It gets the events that
	// are committed after it, none older; whether it gets what its own transaction
	// published before it is left open. ErrNotFound: no such subscriber;
	// ErrExists: the id is in use, or was and is not pruned, or the subscription is Implicit and its
	// subscriber has an implicit one of the same URL that is neither closing nor
	// deleted. Of concurrent calls one creates it; the others wait for its end.
	CreateSubscriptionTx(ctx context.Context, tx Tx, s Subscription) error

	// SubscriptionTx returns a subscription that is not deleted, or ErrNotFound.
	SubscriptionTx(ctx context.Context, tx Tx, id string) (Subscription, error)

	// ImplicitSubscriptionTx returns a subscriber's implicit subscription of a URL that
	// is neither closing nor deleted, or ErrNotFound.
	ImplicitSubscriptionTx(ctx context.Context, tx Tx, subscriber, url string) (Subscription, error)

	// SubscriptionsTx lists subscriptions that are not deleted, implicit ones too,
	// oldest first: up to limit of them after the one with the id after ("" for the first),
	// which may be deleted since. If subscriber is not empty, its own only. ErrNotFound:
	// there never was one of the id after, or it was pruned.
	SubscriptionsTx(ctx context.Context, tx Tx, subscriber, after string, limit int) ([]Subscription, error)

	// UpdateSubscriptionTx stores the URL, the EventTypes, the Description and the
	// Settings of a subscription. Attempts that are claimed later go to the new URL
	// under the new settings. What was expanded stays; the new filter holds for
	// events that are expanded later, and what is asked for anew for those that are
	// committed later. ErrNotFound: no such subscription.
	UpdateSubscriptionTx(ctx context.Context, tx Tx, s Subscription) error

	// HoldSubscriptionTx makes an active subscription paused or disabled, or a
	// paused one disabled, for a reason (DisabledReason). From the commit on none
	// of its deliveries is claimed, and the live ones read as held; attempts in
	// flight are left to end. If it has the status already nothing is changed.
	// ErrNotFound; ErrStatus: it is closing, or disabled and to be paused. The cost
	// does not depend on the backlog.
	HoldSubscriptionTx(ctx context.Context, tx Tx, id string, status SubscriptionStatus, reason string) error

	// ResumeSubscriptionTx makes a paused or disabled subscription active. Its live
	// deliveries of events that Resume takes are due at once, and start their
	// schedules anew, while their attempt numbers go on. The others read as
	// cancelled from the commit on, but for an attempt in flight that succeeds.
	// What is committed, and not expanded yet, counts among the held ones. The
	// failing time of a disabled one ends (Streak, FailingSince, Warned, WarnedAt). If it is
	// active already nothing is changed. ErrNotFound; ErrStatus: it is closing; a
	// *RetentionError, and nothing is changed, if r.NotBefore is not zero and an
	// event that would be sent was published before it. The cost does not depend
	// on the backlog.
	ResumeSubscriptionTx(ctx context.Context, tx Tx, id string, r Resume) error

	// CloseSubscriptionTx begins a subscription's deletion: it gets what was
	// committed before, and what tx has published before this call, but nothing
	// later; once all of that has ended it is deleted. One that is paused or
	// disabled is deleted at once. If it is closing already nothing is changed.
	// ErrNotFound: no such subscription.
	CloseSubscriptionTx(ctx context.Context, tx Tx, id string) error

	// DeleteSubscriptionTx ends a subscription, at a cost that does not depend on
	// its backlog: it gets no new deliveries, and its live ones read as cancelled
	// from the commit on, but for an attempt in flight that succeeds, which makes
	// its delivery delivered. ErrNotFound: no such subscription.
	DeleteSubscriptionTx(ctx context.Context, tx Tx, id string) error

	// DeleteSubscriberTx deletes a subscriber: its subscriptions are closed, and
	// its secrets are destroyed once the last of them is deleted. From the commit
	// on it reads as not found to everything but what is still to be sent. Its id
	// is never in use again. ErrNotFound: no such subscriber.
	DeleteSubscriberTx(ctx context.Context, tx Tx, id string) error
}

// ExpandParams bounds one call of Expand.
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

// Expanded tells what a call of Expand did, and whether it left work.
type Expanded struct {
	Events     int
	Deliveries int
	More       bool
}

// DeliveryKey names a delivery inside one store, by numbers that the store gave.
type DeliveryKey struct {
	Event        int64
	Subscription int64
}

// Lane divides the subscriptions by what is known of their endpoints. Each lane
// has slots of its own.
type Lane uint8

const (
	// LaneNew is that of subscriptions that have not answered yet. It is a lane
	// of its own so that the first delivery of a new subscriber does not wait for
	// the timeouts of those that fail.
	LaneNew Lane = iota
	// LaneProven is that of subscriptions whose endpoints answer fast.
	LaneProven
	// LaneProbation is that of slow and failing subscriptions.
	LaneProbation
	// Lanes is their number.
	Lanes = 3
)

// Batch is the work of one RecordAndClaim.
type Batch struct {
	// Results are read only until the call returns: the next one's take their place.
	Results []Result
	Decide  func(live Live, health Health, r Result, now time.Time) Decision
	Claim   ClaimParams

	// Announce makes the event of a notice, addressed to whom it is for, or returns
	// false. It may be nil: then no events are made. An event whose subscriber is
	// not registered is dropped.
	Announce func(n Notice) (Draft, bool)
	// Notices are stored as they are, besides those of the decisions.
	Notices []Notice
}

// Resume says what a subscription that is resumed takes of what was held: all, or
// none, or what was published at Since or later.
type Resume struct {
	None  bool
	Since time.Time

	// NotBefore makes a resume fail that would send an event published before it.
	// Zero: none fails.
	NotBefore time.Time
	// Force has a Registry set no NotBefore of its own. Stores do not look at it.
	Force bool
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
// that knows of them by its last DispatchStore.Beat or Present it is not due, as Claims
// says it.
type ClaimParams struct {
	Lease time.Duration
	// Token fences what is claimed: it becomes the Claimed.Token of all of it. It must be
	// drawn at random for each claim. Attempt numbers are given out again, after a release
	// or a failover that has lost commits; a token is not.
	Token int64
	// By is the process that claims: see DispatchStore.Beat. Zero is no process: nobody takes
	// over what it claims, and no other one is kept away by it, but it is kept away by them.
	// If its Beat is not zero and anything is claimed, the transaction stores it
	// as DispatchStore.Beat does.
	By Presence
	// Chance in [0,1) is passed on to the decisions about interrupted attempts.
	Chance float64
	Lanes  [Lanes]LaneParams
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

// Claims is what RecordAndClaim returns.
type Claims struct {
	Now time.Time // the database's
	// Recorded has one entry for each of the batch's results, in their order.
	Recorded []Outcome
	// Claimed has the deliveries of one subscription in the order in which they are to be
	// begun: see ClaimParams.
	Claimed []Claimed
	// Interrupted are the attempts that a claim found lost.
	Interrupted []Recorded
	// Notices are those that were stored.
	Notices []Notice
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
	Event  EventInfo
	Result Result
}

// EventInfo is what logs and hooks say of an event.
type EventInfo struct {
	ID        string
	Type      string
	Object    Object
	CreatedAt time.Time // when it was published, on the database's clock
	Notice    bool      // it tells of a notice
	URL       string    // where it is posted; "": to its subscription's URL
}

// Payload is an event as it is sent.
type Payload struct {
	Event EventInfo
	Body  []byte
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
	Event EventInfo
	Body  []byte
	At    time.Time // the database's time of the claim
	// Spared tells that the attempt before was forgiven, because its server closed an
	// idle connection: this one must be made on a connection of its own.
	Spared bool
}

// Target is where a claimed delivery goes. The deliveries of a claim share it.
type Target struct {
	Subscription     string // its id
	SubscriptionNo   int64
	URL              string
	Subscriber       string // its id
	SubscriberNumber int64
	KeyringVersion   int64     // caches of keyrings are keyed by it
	Settings         *Settings // nil: all zero
	Lane             Lane
}

// Release gives a claimed delivery back.
type Release struct {
	Key   DeliveryKey
	Token int64
	Due   time.Time // zero: at once
}
