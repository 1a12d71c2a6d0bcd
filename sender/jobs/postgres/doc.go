// Package postgres keeps jobs in the application's PostgreSQL database, version 15 or
// newer, beside the tables of sender/postgres: for applications that use pgx (New) or
// database/sql with any driver (NewSQL).
//
// Any number of processes claim jobs at once, without a leader: a claim takes row locks
// and skips rows that others have locked. All times are the database's. Callers'
// transactions may be at READ COMMITTED, REPEATABLE READ or SERIALIZABLE. Under the
// stricter two, a submission whose idempotency key is being used by another transaction
// can fail with sender.ErrRetryTx: the caller then runs its transaction again.
package postgres
