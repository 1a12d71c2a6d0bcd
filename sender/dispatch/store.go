package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Store is the dispatcher's side: it expands, claims, records, and does what is to be
// done in the background.
type Store interface {
	sender.SealingStore

	// Check returns an error that matches ErrUnfit unless the database is
	// migrated and durable.
	Check(ctx context.Context) error

	// Woken is signalled, at most once for any number of them, after Wake and
	// after a commit of this process that may have made something due.
	Woken() <-chan struct{}

	// Step expands events, records results, then claims deliveries, in one transaction:
	// what is expanded can be claimed at once. A zero part does nothing. With nothing to
	// do it only reads.
	//
	// Expanding makes the deliveries of events that have been committed: for each event
	// and each subscription that was there when it was committed, has not been deleted
	// since, and matches (see Matches and Draft.About), one pending delivery. It is due
	// at once, unless the subscription is paused or disabled: then it is held, and one
	// row of the subscription says so. A subscription that is closing gets only what was
	// committed before. A step handles up to p.Events events and makes up to about
	// p.Deliveries deliveries; with no p.Events it expands nothing. Each delivery is made
	// exactly once, however many processes expand at a time; those that find another one
	// at it return a zero Expanded.
	//
	// Events come in the order of their commits, except for large ones, of which a step
	// makes only a part: see ExpandParams.Whole. What is behind a large one does not wait
	// for it, unless it is about the same object: nothing about an object is begun before
	// all that was committed before about it is whole. So a delivery can be made after one
	// of a later event to the same subscription; it is claimed before that if neither is.
	// A few large events go on side by side; further ones wait, and up to 1024 events that
	// wait are passed over.
	//
	// Recording: a result whose Token is not the present lease's, or whose delivery
	// is not leased, changes nothing (Outcome.Lost). Otherwise
	// the attempt is stored, b.Decide is called with the rows as they are locked,
	// and its Decision is stored: the delivery's, the subscription's Health, and the
	// notices. Results of one subscription are decided in the order given, each with
	// the Health that the one before left. Decide may run more than once for a
	// result, if the transaction is retried, and must be pure. Decision.Disable
	// makes the subscription disabled if it is active; if it is not, it and the
	// notices of kind NoticeDisabled are dropped; so are those of kind
	// NoticeDeadLettered of a delivery that reads as cancelled. Each notice is stored, and the
	// event that b.Announce makes of it, if any, is published in the same
	// transaction. Decision.Spared is kept with the delivery until the next decision
	// about it, or until its schedule starts anew.
	//
	// Claiming: deliveries that are due, of subscriptions that are active or
	// closing, as ClaimParams says, never more of one than its Settings.MaxInFlight
	// less what is leased of it (a lease that has ended takes no room), nor more than
	// rules.TakeRate grants under its Settings.Rate. A claimed delivery is leased until the database's now +
	// Lease under Token, gets the next attempt number, and is not claimed
	// again before the lease ends. If it has a lease that has ended, that
	// attempt is stored with ClassInterrupted first and b.Decide is called for
	// it: it may end the delivery. The claim's cost does not grow with the
	// backlog, and a delivery that becomes due is never overlooked.
	//
	// Events are read after the commit, so that nobody waits for locks while bodies are on
	// their way; what turns out to be redacted then is cancelled, and not returned. If they
	// cannot be read the claims stand, without: see Claimed.
	Step(ctx context.Context, p ExpandParams, b Batch) (Expanded, Claims, error)

	// Payloads returns events by their numbers, as in DeliveryKey.Event, each once. The
	// Body of one that was redacted is empty; who has claimed a delivery of it gives it
	// back, and it is cancelled. What is not there is left out.
	Payloads(ctx context.Context, events []int64) (map[int64]Payload, error)

	// Release gives claimed deliveries back whose attempts did not begin: the
	// attempt number is free again, Decision.Spared of the attempt before is kept,
	// and they are due at Release.Due. Zero is at once; what has had no attempt is then
	// due since it was claimed, and comes before what was not: see ClaimParams. A token
	// that is not the present lease's changes nothing, so a release whose answer was lost
	// can be repeated.
	Release(ctx context.Context, rs []Release) error

	// LeasedUnder returns up to limit of the deliveries that are leased under one of these
	// tokens, to be released at once: a claim whose answer was lost is undone by its token,
	// which no other one has. It only reads.
	LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]Release, error)

	// Sweep stores the end of up to limit deliveries that read as cancelled, because
	// their subscriptions were deleted or resumed without them, and ends the
	// subscriptions that are closing and have nothing left. It returns how many
	// deliveries it ended. A store that keeps in memory what it has counted for the
	// rollups writes it here: a dispatcher calls Sweep about once a second, and at its end.
	Sweep(ctx context.Context, limit int) (int, error)

	// Keyrings returns the sealed secrets of the subscribers with these numbers, as in
	// Target.SubscriberNumber, by their numbers. Who is not there is left out.
	Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error)

	// ClaimNotices takes up to limit notices, the oldest first, that are neither
	// notified nor acknowledged, and are not taken by another call whose lease
	// still runs, nor put off.
	ClaimNotices(ctx context.Context, lease time.Duration, limit int) ([]ClaimedNotice, error)

	// SettleNotice stores how telling of a notice has ended. Again is zero if it was
	// accepted: that is marked, at the database's time. Otherwise the notice is claimed
	// again after that while, and not before, unless it is accepted already.
	SettleNotice(ctx context.Context, id string, again time.Duration) error

	// StepReplays admits up to limit members of replays that are running, in one
	// transaction. Replays take turns. Each member is looked at once, and then is
	// admitted, if its subscription is not deleted, or else skipped:
	//
	//   - One that was dead-lettered starts its schedule anew, while its attempt
	//     numbers go on. One that was delivered gets a single attempt
	//     (Live.Single).
	//   - It is due at once. Within its subscription it is claimed after everything
	//     else that is due, until it was claimed once. It is held while its
	//     subscription is paused or disabled.
	//
	// No replay is given more than rules.TakeRate grants under its Rate, nor more while
	// about 1,000 that it has admitted, and that are not held, have not been
	// claimed: then it is left alone for as long as it has waited already, and for
	// 5 s at most. A step looks at no more than about 1,000 deliveries, whatever the
	// filters select, and at no more than 16 replays, however many are running.
	//
	// A replay that has nothing left is finished (see Replay.Finish), and its
	// FinishedNotice is stored in the same transaction, as the notices of
	// Step are; announce is as Batch.Announce.
	//
	// Without a replay that is running it only reads.
	StepReplays(ctx context.Context, limit int, announce func(n sender.Notice) (sender.Draft, bool)) (ReplayStep, error)

	// Prune removes, in one batch of one or a few short transactions, up to p.Limit of what
	// is past its time. Any number of processes may be at it at a time:
	//   - the records of delivered and of cancelled deliveries, with their attempts,
	//     if their last attempt began, or they were cancelled, before p.Delivered.
	//     Their ids are ErrNotFound from then on;
	//   - dead letters that ended before p.DeadLetters, with their attempts;
	//   - events that were published before p.Events and are expanded, if no delivery
	//     of them is live, held or dead-lettered, or has a record; with them their
	//     idempotency keys;
	//   - the last versions of objects whose events of these versions were removed before
	//     p.Objects, by a batch that was given such a time too, if they are below 2^52 and
	//     nothing else was published about them. The next version that is assigned, to
	//     such an object or to any other, is above them from the event's removal on;
	//   - notices that were acknowledged before p.Notices;
	//   - figures of minutes before p.Rollups;
	//   - deleted subscriptions that had nothing live any more when they were swept
	//     before p.Events, if there are no records of theirs: from then on their ids
	//     read as ones that never were. Subscribers stay, so that their ids are not
	//     used again.
	//
	// A zero time removes nothing of that. What is live, held or dead-lettered is
	// never lost by a time that is not its own: in particular, records of live
	// deliveries stay, and so does what became live at the same time.
	//
	// A pass begins with an empty p.Cursor and goes on with Pruned.Cursor, under the
	// same times, until that is empty: then all that was to go at its beginning, and
	// did not become live, is gone. What must stay is passed over once in a pass, and
	// in one batch at most a few times p.Limit of it. A malformed cursor is
	// ErrInvalid.
	Prune(ctx context.Context, p PruneParams) (Pruned, error)

	// The four that follow let processes take over what one of them has claimed that is
	// gone. A claim is made by a process (ClaimParams.By), which says that it lives for as
	// long as it holds leases. Who is gone is judged by the dispatchers that watch, by clocks
	// of their own: a store compares no times for it.

	// Beat stores that a process lives, whether it was known or not, and returns those
	// that were known before, itself included. It must wait for nothing that a step
	// waits for, where the database has several writers.
	Beat(ctx context.Context, p Presence) ([]Presence, error)

	// Present returns the processes that are known. It only reads.
	Present(ctx context.Context) ([]Presence, error)

	// TakeOver ends the leases of a process: each one that has not ended by itself ends
	// now, so its delivery is due, and the next claim finds the attempt interrupted.
	// Results count until then. Others' leases stay as they are. Then the process is
	// known no more. It returns how many leases it has ended.
	//
	// If the process has said since that it lives, nothing is changed, or nothing more:
	// it works in short transactions, and each holds only if the beat is still the one
	// given. One that is not known is gone already.
	TakeOver(ctx context.Context, p Presence) (ended int, err error)

	// Leave has a process known no more that holds no leases, if its beat is still the
	// one given.
	Leave(ctx context.Context, p Presence) error
}

// Listener is an optional part of a Store: one that learns of what other
// processes have committed. A dispatcher that runs has Listen run beside it.
type Listener interface {
	// Listen signals Woken for hints of other processes until ctx ends. It gets over
	// errors by itself, and may miss hints.
	Listen(ctx context.Context)
}

// Opener is an optional part of a Store: one that holds something, such as
// connections, for the dispatchers of this process alone.
type Opener interface {
	// Open is called before a dispatcher's first call of the store, and done after its
	// last. Neither fails, or waits for the database to answer. The store may be open any
	// number of times at once, and again after it was done.
	Open() (done func())
}

// LargeSteps is an optional interface of a Store on which larger steps cost less:
// each has its round trips and its commit, however much is in it. Small ones are for a
// database with a single writer at a time, where others wait for their end.
type LargeSteps interface {
	// StepSize is how many deliveries the next call should record, of how many it may
	// claim twice as many; 0: as few as elsewhere. It is asked before each call.
	StepSize() int
}

// ClaimedNotice is a notice that is to be given to a Notifier.
type ClaimedNotice struct {
	sender.Notice
	Tries int // how often it was claimed, this time included
}
