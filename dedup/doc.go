// Package dedup answers two questions inside an application's own transaction: was this
// event's id seen before, and is this object's version newer than the stored one? The
// answers are kept in the same commit as the effect, so neither is ever there without the
// other.
//
//	err := inTx(ctx, func(tx *sql.Tx) error {
//		fresh, err := store.Mark(ctx, tx, "billing", ev.ID, time.Now())
//		if err != nil || !fresh {
//			return err // nil: a duplicate, already applied
//		}
//		newer, err := store.Advance(ctx, tx, "billing", ev.Object, ev.Version)
//		if err != nil || !newer {
//			return err // nil: stale, and remembered as seen
//		}
//		return apply(ctx, tx, ev)
//	})
//
// Package receiver does this for events that arrive over HTTP; this package is
// for any other way: a queue, a file, a catch-up run.
//
// # Transactions
//
// A [Store] works in the transaction that it is given. It never begins, commits,
// rolls back or savepoints it, and keeps neither it nor anything made from it.
// Take the marker before the version, always: transactions that lock in the same
// order do not deadlock.
//
// When an error matches [ErrRetryTx] the transaction lost against another one.
// Its owner rolls it back and runs it again from the beginning.
//
// # Retention
//
// A marker is kept for the retention ([DefaultRetention]) and then removed by [Prune];
// [CheckRetention] refuses a retention that a sender can outlast. Versions stay for ever:
// there is one for each object, not one for each event. They still hold when the marker
// is gone: an event older than the retention is applied only if its version is newer than
// the stored one. So even a sender that redelivers after a year cannot put an older state
// over a newer one.
//
// # Applying again
//
// A duplicate repairs nothing. If an event was applied by a function that had a bug, ask
// for it to be applied again ([Reapplies]), and have it sent once more: [TakeAgain] then
// finds that the duplicate is due, once for each request.
//
// # Implementations
//
// dedup/sqlite, dedup/postgres and dedup/mysql (also for MariaDB) work in a database,
// dedup/memory in a process, for tests. Package dedup/deduptest is the suite that all of
// them pass; run it on one of your own. A store for *sql.Tx or pgx.Tx serves the
// transactions of gorm, bun or ent through [Adapt].
package dedup
