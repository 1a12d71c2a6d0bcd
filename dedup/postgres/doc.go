// Package postgres keeps markers, versions and dead letters in an application's
// PostgreSQL database: in the pgx.Tx of those who use pgx ([New]), or in the
// *sql.Tx of any driver ([NewSQL]).
//
// # Tables
//
// surehook_dedup_markers, surehook_dedup_versions and surehook_dedup_dead_letters,
// made by [Migrate], whose progress is noted in surehook_migrations, or by a tool
// of your own from [Migrations]. They need PostgreSQL 10 (2017). Name a schema in
// [Config], and the search_path of your transactions does not matter.
//
// # Isolation
//
// Under READ COMMITTED, the server's default, a transaction with the id of another
// one waits until that one has ended and then finds a duplicate, or the id free,
// and can go on either way. Under REPEATABLE READ and SERIALIZABLE it may be told
// [dedup.ErrRetryTx] instead, as it is at any level when a lock_timeout passes or
// a deadlock is resolved. A SERIALIZABLE transaction may also fail so when it
// commits, in the driver's words. Package receiver runs it again in all of these
// cases.
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
