package dedup

import (
	"context"
	"time"
)

// Object is what an event is about.
type Object struct {
	// Type has 1 to 64 bytes: words of letters, digits, hyphens and underscores,
	// joined by full stops.
	Type string
	// ID has 1 to 255 bytes of valid UTF-8 without control characters.
	ID string
}

// Store keeps markers and versions. The comments here are its rules: "must" binds every
// implementation, and [github.com/surehook/surehook/dedup/deduptest] checks it.
//
// Transactions. A method works in tx alone. Its writes become visible to others when the
// caller commits, and are undone when the caller rolls back. A store must keep nothing
// outside the transaction, no cache included. Two transactions at the same id or object
// must not both succeed. The second one waits until the first has ended and then answers
// by the committed data, or it fails with [ErrRetryTx]. It must never answer by data that
// are not committed, nor leave it to the commit to find the first one out.
//
// Isolation levels. Under READ COMMITTED the second waits, and a duplicate leaves
// the transaction usable. Under REPEATABLE READ, SERIALIZABLE, and an SQLite
// transaction that read before it wrote, it may fail with [ErrRetryTx].
//
// Values. A scope has 1 to 128 bytes of valid UTF-8 without control characters;
// an id 1 to 128 letters, digits, hyphens and underscores; a version runs from 1
// to 2^53-1. They are compared byte by byte. Anything else must be refused with
// [ErrInvalid] before anything is written, never truncated or normalised: two
// ids that become one lose an event. [CheckMark] and [CheckVersion] do this.
//
// Errors. Besides those two there are the driver's own, wrapped; [WrapError] does this.
// When ctx ends, the error must match ctx.Err(), and the caller must roll the transaction
// back: whether the statement took effect in it is not known.
//
// A Store is safe for concurrent use with different transactions.
type Store[Tx any] interface {
	// Mark records that the event was seen at the time at, and reports whether it is the
	// first time (fresh). A duplicate changes nothing, and keeps the time of the first
	// mark. Times are kept to the microsecond. The zero time is refused with ErrInvalid,
	// since its marker would be pruned at once.
	Mark(ctx context.Context, tx Tx, scope, id string, at time.Time) (fresh bool, err error)

	// Advance raises the object's stored version to version and reports true if it was
	// lower or there was none; otherwise it changes nothing and reports false. Comparing
	// and storing are one step: if two transactions have the same version, exactly one
	// gets true.
	Advance(ctx context.Context, tx Tx, scope string, obj Object, version int64) (newer bool, err error)

	// Version returns the object's stored version as tx sees it, 0 if there is
	// none. It locks nothing: decide by Advance, never by this.
	Version(ctx context.Context, tx Tx, scope string, obj Object) (int64, error)

	// Prune removes at most limit markers, of all scopes, that were marked before before, and
	// returns how many it removed: the oldest first. Versions and dead letters stay. A limit
	// below 1 is refused with ErrInvalid. before counts to the microsecond. Markers that
	// another transaction is removing may be passed over. If fewer than limit were there, a
	// store that is a Reapplies also removes at most limit requests that were asked before
	// that time, and does not count them. No marker is left that they could cover.
	Prune(ctx context.Context, tx Tx, before time.Time, limit int) (removed int, err error)
}
