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
// and in those of github.com/mattn/go-sqlite3, which passes over _pragma without a word:
//
//	file:app.db?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000
//
// There _txlock=immediate is left out, because that driver takes the write lock for
// transactions that only read, too: reads of the registry and the history would wait for
// every writer. So begin a transaction that reads before it writes by [Store.InTx]. One that
// BeginTx has begun fails at its first write with "database is locked" if a dispatcher has
// written since its first read.
//
// In WAL mode a commit survives a loss of power only with synchronous(full);
// anything less is refused with [sender.ErrUnfit], by PublishTx too. With
// _txlock=immediate, or through [Store.InTx], a transaction waits for its turn
// when it begins. A deferred one that reads before it writes may find that it may
// not write any more: PublishTx then returns an error that matches
// [sender.ErrRetryTx].
//
// A driver makes a new file with the mode 0644 and the umask. The file holds what customers
// are told: make it before, with the mode 0600. SQLite gives the files that it puts beside it
// the same mode.
//
// # Writers take turns
//
// SQLite has one writer at a time, and those who wait for its lock poll: while a backlog
// drains, others would starve. So the store's transactions queue up inside the process,
// each for one short batch. The application's own do too if they go through [Store.InTx]
// or [Store.WaitToWrite]. While it has its turn, a function must not call a method that
// writes to the same store and does not take its transaction, such as Publish. It would
// wait for itself. Inside the function of InTx, on its goroutine, such a call is refused
// at once. On another goroutine for which the function waits, and between WaitToWrite and
// done, nothing can tell, and the call waits until its context ends. Methods that only
// read wait for no writer.
//
// # Many processes
//
// Every process on the machine may run a dispatcher. While a process holds leases, it
// says so once a second in surehook_processes. If it has not for five seconds, the others
// end its leases. So the claims of a process that is gone are claimed again within ten
// seconds. A process that was stopped for that long changes nothing when it comes back.
// But if it was stopped within a transaction, it keeps the one writer's lock until it
// goes on or is killed.
//
// # How it is stored
//
// The rows are plain, and can be read with SQLite's shell. A live delivery is in one of
// surehook_pending, surehook_leases (an attempt is in flight) and surehook_waiting (for
// its next attempt). These tables stay as small as the work. surehook_ended has the dead
// letters and the cancelled deliveries, surehook_attempts has every attempt, and
// surehook_bodies the bodies that were made for an older payload version. An
// attempt whose class is empty means that its delivery is delivered. A subscription's
// head (surehook_heads) says when to look at its deliveries, and surehook_turns says the
// same for a subscriber. So a claim visits only those who have something due, however
// many others there are. Since there is one writer at a time, the order of the commits is
// that of the events' seq.
//
// A change that concerns all deliveries of a subscription is written once, in its head.
// While the subscription is paused or disabled, its head is not open. A resume gives the
// head a new epoch. Rows that wait since an earlier epoch are due at once, unless
// surehook_left says that the resume has skipped them. A sweep ends the skipped ones in
// batches.
package sqlite
