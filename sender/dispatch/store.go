package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Store is the dispatcher's side of a store: it expands, claims, records, and does the work
// in the background.
type Store interface {
	sender.SealingStore

	// Check returns an error that matches ErrUnfit unless the database is
	// migrated and durable.
	Check(ctx context.Context) error

	// Woken is signalled after Wake, and after a commit of this process that may have made
	// something due. Several of these may cause one signal.
	Woken() <-chan struct{}

	// Step expands events, records results, and then claims deliveries, in one transaction:
	// deliveries that it makes can be claimed at once. A zero part does nothing. If there
	// is nothing to do, Step only reads.
	//
	// Expanding makes the deliveries of committed events: one pending delivery for each event
	// and each subscription that existed when the event was committed, has not been deleted
	// since, and matches (see Matches and Draft.About), if the subscription's Filter matches
	// the body that it gets (see rules.Content). This is decided once, by the filter and the
	// payload version that are stored when the expansion comes to the subscription, and stays
	// so. A store reads no body of an event that no subscription with a filter matches. It
	// reads few bytes, and converts few, while others wait for its locks: it leaves an event
	// that would take more, and those behind it, to the next step, with Expanded.More. The
	// delivery is due at once, unless the subscription is paused or disabled: then it is
	// held, and one row of the subscription says so. A subscription that is closing gets only
	// events that were committed before it was closing. A step handles up to p.Events events,
	// asks up to about p.Deliveries subscriptions whether they get one, and makes the
	// deliveries; with no p.Events it expands nothing. Each delivery is made exactly once,
	// however many processes expand at a time. A process that finds another one expanding
	// returns a zero Expanded.
	//
	// Events are expanded in the order of their commits. Large events are an exception, since
	// a step makes only a part of them: see ExpandParams.Whole. Events behind a large event
	// do not wait for it, unless they are about the same object: an event about an object is
	// not begun before all earlier events about this object are whole. So a delivery can be
	// made after a delivery of a later event to the same subscription; if neither is claimed
	// yet, the earlier event's delivery is claimed first. A few large events go on side by
	// side. Further large events wait, and up to 1024 waiting events are passed over.
	//
	// A subscription with an order (Settings.Order) has a line for each object: see
	// rules.Line. Each new delivery comes into it, at the place that rules.Line.Enter gives.
	// At most one of a line is out, and can be claimed. The others are behind: they count as
	// pending, and are due when they come out. When the one that is out ends, the lowest of
	// the others comes out in the same transaction, unless a dead letter before it holds it
	// back (rules.Holds). So under sender.OrderObject a claim finds a delivery only if every
	// earlier version of its object has ended. Under sender.OrderLatest a new delivery ends
	// those before it that are not leased, as superseded; one that is leased ends so when its
	// attempt has ended otherwise than with success, or is released. If more of a line are to
	// end than rules.Superseding grants, nothing comes out of it until a Sweep has ended the
	// rest: see rules.Line.Halts. A delivery that is sent again, or a member of a replay that
	// is admitted, comes into its line in the same way, and may have to wait there, or be
	// superseded at once. The cost of a call does not grow with the lines. A change of the
	// order counts for deliveries that are made or sent again from then on.
	//
	// Recording: a result whose Token is not the present lease's, or whose delivery is not
	// leased, changes nothing (Outcome.Lost). Otherwise the attempt is stored, b.Decide is
	// called with the rows as they are locked, and its Decision is stored: the delivery's
	// state, the subscription's Health, and the notices. Results of one subscription are
	// decided in the order given, each with the Health that the result before it left. Decide
	// may run more than once for a result, if the transaction is retried, so it must be pure.
	// Decision.Disable makes the subscription disabled if it is active. If it is not active,
	// Disable and the notices of kind NoticeDisabled are dropped, and if it is closing those
	// of kind NoticeFailing, too. Notices of kind NoticeDeadLettered are dropped if their
	// delivery reads as cancelled. Each other notice is stored, and the event that b.Announce
	// makes of it, if any, is published in the same transaction. Decision.Spared is kept with
	// the delivery until the next decision about it, or until its schedule starts anew.
	//
	// Claiming: Step claims deliveries that are due, of subscriptions that are active or
	// closing, as ClaimParams says. From one subscription it never claims more than
	// Settings.MaxInFlight less the subscription's leased deliveries (a lease that has
	// ended takes no room), nor more than rules.TakeRate grants under Settings.Rate. A
	// claimed delivery is leased until the database's now + Lease under Token, gets the
	// next attempt number, and is not claimed again before the lease ends. If it has a
	// lease that has ended, the attempt of that lease is stored with ClassInterrupted
	// first, and b.Decide is called for it. This decision may end the delivery. The claim's
	// cost does not grow with the backlog, and a delivery that becomes due is never
	// overlooked.
	//
	// Events are read after the commit, so that nobody waits for locks while bodies are on
	// their way. A delivery whose event turns out to be redacted is cancelled, and not
	// returned. If the events cannot be read, the claims stand without them: see Claimed.
	Step(ctx context.Context, p ExpandParams, b Batch) (Expanded, Claims, error)

	// Payloads returns events by their numbers, as in DeliveryKey.Event, each once. The
	// Body of a redacted event is empty: a process that has claimed a delivery of it gives
	// the delivery back, and the delivery is cancelled. Events that do not exist are left
	// out.
	Payloads(ctx context.Context, events []int64) (map[int64]Payload, error)

	// KeepBodies fixes the bodies of claimed deliveries that are not those of their events,
	// and returns all that are kept, by their deliveries. The first body that is kept for a
	// delivery is its body for as long as the event is: a later one is dropped, and the one
	// that is kept is returned. Body is kept only while the delivery is leased under Token
	// and its event is not redacted; redacting an event removes what is kept of it, and so
	// does a Release of its first attempt, since nothing of it was sent. A delivery without a
	// kept body is left out. The returned bodies are committed. If no element has a Body,
	// KeepBodies only reads.
	KeepBodies(ctx context.Context, all []KeptBody) (map[DeliveryKey][]byte, error)

	// Release gives back claimed deliveries whose attempts did not begin: the attempt
	// number is free again, Decision.Spared of the attempt before is kept, and they are due
	// at Release.Due. A schedule that has begun stands still until then, from the claim on.
	// Zero is at once: a delivery without an attempt is then due since its
	// event was created, and comes before deliveries that were not claimed: see ClaimParams.
	// A token that is not the present lease's changes nothing, so a release whose answer
	// was lost can be repeated.
	Release(ctx context.Context, rs []Release) error

	// LeasedUnder returns up to limit of the deliveries that are leased under one of these
	// tokens, so that they can be released at once: a claim whose answer was lost is undone
	// by its token, which no other claim has. It only reads.
	LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]Release, error)

	// Sweep stores the end of up to p.Limit deliveries that read as cancelled, because their
	// subscriptions were deleted or resumed without them, and ends the subscriptions that are
	// closing and have nothing left. It erases the Settings of deleted subscriptions that
	// have nothing left, and what is sealed in them. In lines that halt it ends deliveries
	// that newer ones have overtaken, as far as the limit allows. It lets a line go on once
	// none of these is left in it. While lines wait for it, p.Cancels bounds how many of the
	// deliveries that read as cancelled it ends: these hold up no line.
	//
	// It also lets deliveries go on that a dead letter does not hold back any more, because
	// it was pruned, or because its subscription is closing or has other settings. Of these,
	// those that are too old by p.NotBefore end instead, as far as the limit allows, unless
	// their subscription is paused or disabled: see rules.Expire. The dead letter goes on to
	// hold back the others until all of these have ended. If a Sweep makes several deliveries
	// of a line dead letters, one notice tells of them: see rules.ExpireNotice. It is stored
	// in the same transaction, as the notices of Step are.
	//
	// A store that keeps its counts for the rollups in memory writes them here, and those of
	// subscriptions within about ten seconds. A dispatcher calls Sweep about once a second,
	// and at its end with limit 0. If a store cannot write its counts, it sweeps all the same,
	// and returns what it did beside the error. It also merges the rollups of each hour, some
	// minutes after its end: see history.Store.HourRollups.
	Sweep(ctx context.Context, p SweepParams) (Swept, error)

	// Keyrings returns the sealed secrets of the subscribers with these numbers, as in
	// Target.SubscriberNumber, by their numbers. Subscribers that do not exist are left
	// out.
	Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error)

	// ClaimNotices takes up to limit notices that are due: those that have been due for
	// longest, and of equal ones the older ones. A notice is due from when it was made, from
	// the end of the lease of the call that took it last, or from the time to which it was
	// put off since. One that is notified or acknowledged is not due.
	ClaimNotices(ctx context.Context, lease time.Duration, limit int) ([]ClaimedNotice, error)

	// SettleNotice stores whether a Notifier has accepted a notice. If again is zero, it
	// has: the notice is marked so, at the database's time. Otherwise the notice is claimed
	// again after that time, and not before, unless it is accepted already.
	SettleNotice(ctx context.Context, id string, again time.Duration) error

	// StepReplays admits up to limit members of replays that are running, in one
	// transaction. Replays take turns. Each member is looked at once. Then it is skipped,
	// and counted as too old, if its event was published before the time that
	// rules.ReplayNotBefore gives for the replay; else it is admitted if its subscription is
	// not deleted, and skipped otherwise:
	//
	//   - A dead-lettered or superseded delivery starts its schedule anew, while its attempt
	//     numbers go on. A delivered delivery gets a single attempt (Live.Single).
	//   - An admitted delivery is due at once. Within its subscription it is claimed after
	//     everything else that is due, until it was claimed once. One for which a later
	//     version of its object waits in a line, that no replay has admitted, takes its turn
	//     with the others. It is held while its subscription is paused or disabled.
	//
	// No replay is given more than rules.TakeRate grants under its Rate, nor any more while
	// about 1,000 of its admitted deliveries, not counting held ones and those behind others
	// in a line, have not been claimed. Then it is left alone for as long as it has waited
	// already, and for 5 s at most: see ReplayPauses. A step looks at no more than about
	// 1,000 deliveries, whatever the filters select, and at no more than 16 replays, however
	// many are running.
	//
	// A replay that has no members left is finished (see Replay.Finish), and its
	// FinishedNotice is stored in the same transaction, as the notices of Step are.
	// announce is like Batch.Announce.
	//
	// If no replay is running, it only reads.
	StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (ReplayStep, error)

	// Prune removes, in one batch of one or a few short transactions, up to p.Limit of the
	// records that are past their time. Any number of processes may prune at a time. It
	// removes:
	//   - the records of delivered, cancelled and superseded deliveries, with their
	//     attempts, if their last attempt began, or they ended otherwise, before p.Delivered.
	//     Their ids are ErrNotFound from then on;
	//   - dead letters that ended before p.DeadLetters, with their attempts;
	//   - events that were published before p.Events and are expanded, if no delivery
	//     of them is live, held or dead-lettered, or has a record; with them their
	//     idempotency keys;
	//   - the last versions of objects, if the events of these versions were removed before
	//     p.Objects by a batch that was given such a time too, the versions are below 2^52,
	//     and nothing else was published about the objects. From the event's removal on,
	//     the next version that is assigned, to such an object or to any other, is above
	//     them. A store may keep one while earlier versions are in the line of its object;
	//   - notices that were acknowledged before p.Notices;
	//   - replays that were finished or cancelled before p.Events;
	//   - figures of minutes before p.Rollups, and of the hours that they make up, and
	//     figures of subscriptions in hours before p.SubscriptionRollups;
	//   - deleted subscriptions that had nothing live any more when they were swept before
	//     p.Events, if there are no records of theirs: from then on their ids read as ids
	//     that never existed. Subscribers stay, so that their ids are not used again.
	//
	// A zero time removes nothing of its kind. Live, held and dead-lettered deliveries are
	// never lost by a time that is not their own. In particular, records of live deliveries
	// stay, and so do deliveries that became live at the same time.
	//
	// A pass begins with an empty p.Cursor and goes on with Pruned.Cursor, under the same
	// times, until that cursor is empty. Then all records that had to go at the beginning
	// of the pass, and did not become live, are gone. Records that must stay are passed
	// over once in a pass; one batch passes over at most a few times p.Limit of them. An event
	// that was expanded after one that was published later may stay, with the records of its
	// deliveries, until that one is old enough, too. A malformed cursor is ErrInvalid.
	//
	// Another error is about one kind of record. Pruned.Cursor beside it, if it is not empty,
	// leads past the rest of that kind, so that the pass goes on with the others.
	Prune(ctx context.Context, p PruneParams) (Pruned, error)

	// The four methods that follow let processes take over the claims of a process that is
	// gone. A claim is made by a process (ClaimParams.By), which says that it lives for as
	// long as it holds leases. The watching dispatchers judge by clocks of their own which
	// process is gone: a store compares no times for it.

	// Beat stores that a process lives, whether it was known or not, and returns the
	// processes that were known before, itself included. Where the database has several
	// writers, Beat must wait for nothing that a step waits for.
	Beat(ctx context.Context, p Presence) ([]Presence, error)

	// Present returns the processes that are known. It only reads.
	Present(ctx context.Context) ([]Presence, error)

	// TakeOver ends the leases of a process: each lease that has not ended by itself ends
	// now, so its delivery is due, and the next claim finds the attempt interrupted. Until
	// that claim the attempt's result counts. The leases of other processes stay as they
	// are. Then the process is known no more. TakeOver returns how many leases it has
	// ended.
	//
	// If the process has said since that it lives, TakeOver changes nothing, or nothing
	// more: it works in short transactions, and each of them takes effect only if the beat
	// is still the one given. A process that is not known is gone already.
	TakeOver(ctx context.Context, p Presence) (ended int, err error)

	// Leave removes a process that holds no leases from the known ones, if its beat is
	// still the one given.
	Leave(ctx context.Context, p Presence) error
}

// Listener is an optional part of a Store that learns of the commits of other processes. A
// running dispatcher runs Listen beside it.
type Listener interface {
	// Listen signals Woken for hints of other processes until ctx ends. It recovers from
	// errors by itself, and may miss hints.
	Listen(ctx context.Context)
}

// Opener is an optional part of a Store that holds something, such as connections, only for
// the dispatchers of this process.
type Opener interface {
	// Open is called before a dispatcher's first call of the store, and done after its last
	// call. Neither of them fails, or waits for the database to answer. The store may be
	// open any number of times at once, and again after it was done.
	Open() (done func())
}

// ReplayPauses is an optional part of a Store whose StepReplays leaves a replay alone for a
// time while what it has admitted waits to be claimed.
type ReplayPauses interface {
	// EndReplayPauses makes the next steps look at these replays at once, and reports whether
	// there are any. RunOnce calls it when it has claimed all that can be claimed now:
	// otherwise it would end while the rest of a replay waits for a look.
	EndReplayPauses(ctx context.Context) (some bool, err error)
}

// RestoreWatch is an optional part of a Store whose database tells when it was brought back to
// an earlier state, or moved. The dispatcher asks it when it begins, and every five seconds.
type RestoreWatch interface {
	// RestoreIfMoved makes versions and positions go on above what may be lost (see
	// sender.Restoration), once, if the database is not the one that the store has worked with
	// before. It expands nothing. moved tells whether this call has done it. An error that
	// matches errors.ErrUnsupported says that the database does not tell.
	RestoreIfMoved(ctx context.Context) (r sender.Restoration, moved bool, err error)
}

// LargeSteps is an optional interface of a Store on which larger steps cost less: a step
// has its round trips and its commit, however much is in it. Small steps are for a database
// with a single writer at a time, where others wait for their end.
type LargeSteps interface {
	// StepSize is how many deliveries the next call should record; it may claim twice as
	// many. 0: as few as on other stores. The dispatcher asks before each call.
	StepSize() int
}

// ClaimedNotice is a notice that must be given to a Notifier.
type ClaimedNotice struct {
	sender.Notice
	Tries int // how often it was claimed, this time included
}
