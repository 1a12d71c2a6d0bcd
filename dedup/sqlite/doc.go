// Package sqlite keeps markers, versions and dead letters in an application's
// SQLite database. It works in the *sql.Tx of any driver and imports none.
//
// # Tables
//
// surehook_dedup_markers, surehook_dedup_versions and surehook_dedup_dead_letters,
// made by [Migrate], whose progress is noted in surehook_migrations, or by a tool
// of your own from [Migrations]. They need SQLite 3.24 (2018).
//
// # The connection
//
// Set these in the DSN, so that every connection of the pool has them; in the
// words of modernc.org/sqlite:
//
//	file:app.db?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=synchronous(full)
//
// SQLite has one writer at a time. With _txlock=immediate a transaction waits for
// its turn when it begins, for up to busy_timeout. Without it, a transaction that
// reads before it writes may find that it may not write any more
// (SQLITE_BUSY_SNAPSHOT); this, and a wait that was too long, is
// [dedup.ErrRetryTx]. In WAL mode a commit survives a loss of power only with
// synchronous(full).
package sqlite
