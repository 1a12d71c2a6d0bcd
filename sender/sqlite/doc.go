// Package sqlite keeps a sender's events, registry and deliveries in an SQLite
// database, beside the application's own tables. It imports no driver: any that
// database/sql knows will do, with SQLite 3.38 (2022) or later.
//
// # The connection
//
// Set these in the DSN, so that every connection of the pool has them; in the
// words of modernc.org/sqlite:
//
//	file:app.db?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)
//
// In WAL mode a commit survives a loss of power only with synchronous(full);
// anything less is refused with [sender.ErrUnfit], by PublishTx too. With
// _txlock=immediate, or through [Store.InTx], a transaction waits for its turn
// when it begins. A deferred one that reads before it writes may find that it may
// not write any more: PublishTx then returns an error that matches
// [sender.ErrRetryTx].
//
// # Writers take turns
//
// SQLite has one writer at a time, and those who wait for its lock poll: while a
// backlog drains, others would starve. So the store's transactions queue up inside
// the process, each for one short batch, and so do the application's own if they
// go through [Store.InTx] or [Store.Turn]. While it has its turn, a function must
// call nothing of the same store that is not given its transaction, for that would
// wait for itself.
//
// # How it is stored
//
// A commit and a row each cost far more than the few bytes that a delivery needs,
// so what is written together is kept together. The order of the commits is that
// of the events' seq, since there is one writer. Expand appends which deliveries
// there are: one row for each batch, and one for each subscription in it. A
// subscription's head says up to which event it was claimed; what comes after has
// never been. The attempts in flight of all processes are one row, which a claim
// adds to and a recording takes from. A delivery has a row of its own only while
// it awaits another attempt, and for good if it was dead-lettered or cancelled;
// attempts are stored in rows of those that were recorded together. So a delivery
// that succeeds at once, which most do, costs a share of a handful of rows. None of
// it grows with the backlog.
package sqlite
