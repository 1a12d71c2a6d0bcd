// Package postgres keeps markers, versions, dead letters and requests to apply again in an
// application's PostgreSQL database: in the pgx.Tx of those who use pgx ([New]), or in the
// *sql.Tx of any driver ([NewSQL]). [InTx] and [InTxSQL] run a receiver's transactions.
//
// # Tables
//
// surehook_dedup_markers, surehook_dedup_versions, surehook_dedup_dead_letters and
// surehook_dedup_reapplies, made by [Migrate] or [MigratePool], whose progress is noted
// in surehook_migrations, or by a tool of your own from [Migrations]. They need PostgreSQL 10
// (2017). Name a schema in [Config], and the search_path of your transactions does not
// matter.
//
// # Applying events again
//
// A row of surehook_dedup_reapplies asks for events to be applied again that were taken
// before: see [dedup.Reapply]. It takes effect when such an event arrives once more. In
// package receiver, Receiver.Reapply writes the row. By hand it is one statement:
//
//	INSERT INTO surehook_dedup_reapplies (scope, event_id) VALUES ('billing', 'evt_1');
//	INSERT INTO surehook_dedup_reapplies (scope, object_type, object_id) VALUES ('billing', 'invoice', '17');
//	INSERT INTO surehook_dedup_reapplies (scope, marked_from, marked_until)
//		VALUES ('billing', '2026-03-01 12:00+00', '2026-03-02 12:00+00');
//
// An event must match all that is given. marked_from and marked_until are times at which
// events were taken first (marked_at of surehook_dedup_markers). number and asked_at have
// defaults: leave them out. Events that are taken after asked_at are not covered; it is
// the server's clock, and the markers have the clock of the process that took the event. A
// row that is deleted has no effect any more. In surehook_dedup_markers, reapplied is the
// number of the last row that had the event applied again.
//
// # Isolation
//
// Under READ COMMITTED, the server's default, a transaction with the id of another one
// waits until that one has ended. Then it finds a duplicate, or the id free, and can go on
// either way. Under REPEATABLE READ and SERIALIZABLE it may be told [dedup.ErrRetryTx]
// instead, as it is at any level when a lock_timeout passes or a deadlock is resolved. A
// SERIALIZABLE transaction may also fail so when it commits, in the driver's words.
// Package receiver runs it again in all of these cases.
//
// A transaction that marks, advances, sets aside or discards is durable once it has
// committed: synchronous_commit is set to on for it if it is off, in the same trip.
//
// Set a lock_timeout of a second or two, or a deadline in the context. Otherwise a
// transaction that hangs somewhere else holds up all that wait for it.
//
// # Cost
//
// [Store.MarkAndAdvance] is one trip to the server; package receiver uses it. With [InTx]
// that trip also begins the transaction: a receiver then makes no more trips than its
// effect alone would. Nothing here needs a connection of its own, prepared statements, or
// anything else that a pooler like PgBouncer would not allow in a transaction.
package postgres
