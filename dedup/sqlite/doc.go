// Package sqlite keeps markers, versions, dead letters and requests to apply again in an
// application's SQLite database. It works in the *sql.Tx of any driver and imports none.
//
// # Tables
//
// surehook_dedup_markers, surehook_dedup_versions, surehook_dedup_dead_letters and
// surehook_dedup_reapplies, made by [Migrate], whose progress is noted in
// surehook_migrations, or by a tool of your own from [Migrations]. They need SQLite 3.24
// (2018). Times are microseconds since 1970, UTC.
//
// # Applying events again
//
// A row of surehook_dedup_reapplies asks for events to be applied again that were taken
// before: see [dedup.Reapply]. It takes effect when such an event arrives once more. In
// package receiver, Receiver.Reapply writes the row. By hand it is one statement:
//
//	INSERT INTO surehook_dedup_reapplies (scope, event_id) VALUES ('billing', 'evt_1');
//	INSERT INTO surehook_dedup_reapplies (scope, object_type, object_id) VALUES ('billing', 'invoice', '17');
//	INSERT INTO surehook_dedup_reapplies (scope, marked_from, marked_until) VALUES ('billing',
//		strftime('%s', '2026-03-01 12:00') * 1000000, strftime('%s', '2026-03-02 12:00') * 1000000);
//
// An event must match all that is given. marked_from and marked_until are times at which
// events were taken first (marked_at of surehook_dedup_markers). number and asked_at have
// defaults: leave them out. Events that are taken after asked_at are not covered. A row
// that is deleted has no effect any more. In surehook_dedup_markers, reapplied is the
// number of the last row that had the event applied again.
//
// # The connection
//
// Set these in the DSN, so that every connection of the pool has them; in the
// words of modernc.org/sqlite:
//
//	file:app.db?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=synchronous(full)
//
// and in those of github.com/mattn/go-sqlite3, which passes over _pragma without a word:
//
//	file:app.db?_txlock=immediate&_journal_mode=WAL&_busy_timeout=5000&_synchronous=FULL
//
// If a sender of this module works in the same file, leave _txlock=immediate out with mattn's
// driver, which takes the write lock for the sender's reads, too: see package sender/sqlite.
//
// SQLite has one writer at a time. The transactions of [InTx] take turns. For others, and
// those of other processes, a transaction waits with _txlock=immediate when it begins, for
// up to busy_timeout. Without it, a transaction that reads before it writes may find that
// it may not write any more (SQLITE_BUSY_SNAPSHOT); this, and a wait that was too long, is
// [dedup.ErrRetryTx]. In WAL mode a commit survives a loss of power only with
// synchronous(full).
//
// A driver makes a new file with the mode 0644 and the umask. If others on the machine are
// not to read what it holds, make it before, with the mode 0600. SQLite gives the files that
// it puts beside it the same mode.
package sqlite
