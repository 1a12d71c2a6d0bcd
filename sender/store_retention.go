package sender

import (
	"context"
	"time"
)

// RetentionStore forgets. The dispatcher prunes, History redacts. Both work in
// batches, of one or a few short transactions each; any number of processes may be
// at it at a time.
type RetentionStore interface {
	// Prune removes, in one batch, up to p.Limit of what is past its time:
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

	// Redact removes, in one batch of up to about p.Limit events, the bodies of the
	// events that p names and the snippets of their attempts. Only events that were
	// committed before the first batch count, expanded or not. What else there is of
	// them stays; their deliveries read as Redacted. Those that are live read as
	// cancelled from the commit on, held ones too, but for an attempt in flight that
	// succeeds, and are not claimed; one that was delivered before it was sent again
	// stays delivered. An event that was not expanded gets no more deliveries. An
	// event that was redacted before is not counted.
	//
	// It begins with an empty p.Cursor and goes on with Redacted.Cursor until that is
	// empty; if it is broken off it can begin anew. ErrNotFound: p.Subscriber never
	// was one's id. A malformed cursor is ErrInvalid.
	Redact(ctx context.Context, p RedactParams) (Redacted, error)
}

// PruneParams says what goes, by times of the database's clock, and bounds one
// batch.
type PruneParams struct {
	Delivered   time.Time
	DeadLetters time.Time
	Events      time.Time
	Notices     time.Time
	Rollups     time.Time
	Objects     time.Time

	Cursor string // of the batch before; "": a pass begins
	Limit  int    // at least 1
}

// Pruned counts what was removed.
type Pruned struct {
	Deliveries  int // records of delivered and cancelled ones
	DeadLetters int
	Events      int
	Notices     int
	Rollups     int // minutes, each once for every process that did something in it

	Subscriptions int
	Objects       int // whose last versions are forgotten

	Cursor string // of the batch that follows; "": the pass is over
}

func (p Pruned) plus(q Pruned) Pruned {
	return Pruned{
		Deliveries: p.Deliveries + q.Deliveries, DeadLetters: p.DeadLetters + q.DeadLetters, Events: p.Events + q.Events,
		Notices: p.Notices + q.Notices, Rollups: p.Rollups + q.Rollups, Subscriptions: p.Subscriptions + q.Subscriptions,
		Objects: p.Objects + q.Objects, Cursor: q.Cursor,
	}
}

// RedactParams names events: those about an object, or those that are addressed to
// a subscriber, registered or deleted. One of the two is given.
type RedactParams struct {
	Object     Object
	Subscriber string

	Cursor string // of the batch before; "": it begins
	Limit  int    // at least 1
}

// Redacted counts what a batch has redacted.
type Redacted struct {
	Events     int
	Deliveries int // that were live

	Cursor string // of the batch that follows; "": it is done
}
