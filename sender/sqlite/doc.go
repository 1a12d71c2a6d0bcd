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
// go through [Store.InTx] or [Store.WaitToWrite]. While it has its turn, a function must
// call nothing of the same store that is not given its transaction, for that would
// wait for itself.
//
// # Many processes
//
// Every process on the machine may run a dispatcher. What one had claimed that is gone is
// claimed again within ten seconds: while it holds leases it says so once a second in
// surehook_processes, and the others end its leases when it has not for five. One that was
// stopped for so long changes nothing when it comes back. But if it was stopped within a
// transaction it has the one writer's lock until it goes on, or is killed.
//
// # How it is stored
//
// Plain rows, to be read with SQLite's shell. A delivery that is live is in one of
// surehook_pending, surehook_leases (an attempt is in flight) and surehook_waiting
// (for its next attempt), which stay as small as the work; surehook_ended has the
// dead letters and the cancelled ones, and surehook_attempts every attempt: one whose
// class is empty means that the delivery is delivered. A subscription's head
// (surehook_heads) says when to look at its deliveries, and surehook_turns the same
// for a subscriber, so that a claim visits those who have something due and no
// others, however much there is. One writer at a time means that the order of the
// commits is that of the events' seq.
//
// What concerns all deliveries of a subscription is written in its head, however
// many they are. While it is paused or disabled its head is not open. A resume gives
// it a new epoch: rows that wait since an earlier one are due at once, unless
// surehook_left says that the resume has left them behind; a sweep ends those in
// batches.
package sqlite
