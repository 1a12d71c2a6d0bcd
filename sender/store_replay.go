package sender

import (
	"context"
	"time"
)

// ReplayStore keeps replays. Replays uses it. Filters have been validated by the
// caller.
//
// A replay has a set of members: the deliveries that its filter selects (see
// ReplayFilter.Selects) and that had its status when it was created, for as long
// as they keep it. One that is made live meanwhile, by whomever, has left the set,
// and does not come back when it ends again; so has one that is pruned. What is
// redacted is in no set, and leaves those that it is in.
type ReplayStore interface {
	// CreateReplay stores a replay, which is running, and fixes its set, in a
	// transaction that writes one row, however large the set is. It fills in ID,
	// Status, CreatedAt and Matched, and ignores what the replay has there. Matched
	// is counted on a snapshot that may be read before the transaction: a delivery
	// that becomes delivered between the two can be a member without being counted.
	// ErrNotFound: the filter names a subscription or a subscriber that never was;
	// a *RetentionError, and nothing is stored, if notBefore is not zero and a
	// member's event was published before it.
	CreateReplay(ctx context.Context, r Replay, notBefore time.Time) (Replay, error)

	// PreviewReplay tells what the set of a replay would be. It changes nothing,
	// and may read in several transactions.
	PreviewReplay(ctx context.Context, f ReplayFilter) (ReplayPreview, error)

	// Replay returns a replay, or ErrNotFound.
	Replay(ctx context.Context, id string) (Replay, error)

	// Replays lists replays, newest first. ErrNotFound: there is none with the id
	// q.After.
	Replays(ctx context.Context, q ReplayQuery) ([]Replay, error)

	// SetReplayStatus makes a replay running, paused or cancelled, if
	// ReplayStatus.Turn lets it. What was admitted goes on. ErrNotFound; ErrStatus.
	SetReplayStatus(ctx context.Context, id string, to ReplayStatus) (Replay, error)
}

// ReplayStepper is the dispatcher's side of replays.
type ReplayStepper interface {
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
	// RecordAndClaim are; announce is as Batch.Announce.
	//
	// Without a replay that is running it only reads.
	StepReplays(ctx context.Context, limit int, announce func(n Notice) (Draft, bool)) (ReplayStep, error)
}

// ReplayStep is what StepReplays did.
type ReplayStep struct {
	Admitted int
	Skipped  int
	Finished []Replay
	Notices  []Notice // that were stored
	// More: another step would get on at once.
	More bool
	// Next is when another step may get on, if More is not set; zero: no replay is
	// running.
	Next time.Time
}
